# The variable result as strict JSON. Nothing of the code's is asked: no json
# module, no default, no repr of an object of its own.

ESCAPES = {n: '\\u%04x' % n for n in range(32)}
ESCAPES.update({34: '\\"', 92: '\\\\', 8: '\\b', 9: '\\t', 10: '\\n', 12: '\\f', 13: '\\r'})
INFINITY = float('inf')


class Unrepresentable(Exception):
    pass


def encode_value(value, max_bytes, max_depth):
    """The bytes of value as JSON, or Unrepresentable with the place and the reason."""
    parts = []
    size = 0
    # Open containers: an iterator over what is left, the closing bracket, and
    # the key or index of the member at hand, from which the place is told.
    stack = []
    while True:
        text = None
        kind = type(value)
        if value is None:
            text = 'null'
        elif value is True:
            text = 'true'
        elif value is False:
            text = 'false'
        elif issubclass(kind, str):
            text = quote(value, stack)
        elif issubclass(kind, int):
            text = int.__repr__(value)
        elif issubclass(kind, float):
            if value != value or float.__abs__(value) == INFINITY:
                refuse(stack, '%s is not representable in JSON' % float.__repr__(value))
            text = float.__repr__(value)
        elif issubclass(kind, dict):
            text = '{'
            stack.append([iter(list(dict.items(value))), '}', None])
        elif issubclass(kind, (list, tuple)):
            text = '['
            stack.append([iter(list(value)), ']', -1])
        else:
            refuse(stack, 'an object of type %s has no JSON form' % kind.__name__)
        if len(stack) > max_depth:
            refuse((), 'more than %d levels deep, or a cycle' % max_depth)
        size += add(parts, text)
        opened = text in ('{', '[')
        # On to the next member, closing what is complete.
        while stack:
            level = stack[-1]
            try:
                member = next(level[0])
            except StopIteration:
                size += add(parts, level[1])
                stack.pop()
                opened = False
                continue
            if not opened:
                size += add(parts, ',')
            if level[1] == '}':
                key, value = member
                if not issubclass(type(key), str):
                    refuse(stack[:-1], 'a key of type %s: expected a string' % type(key).__name__)
                level[2] = key
                size += add(parts, quote(key, stack) + ':')
            else:
                value = member
                level[2] += 1
            break
        else:
            break
        if size > max_bytes:
            break
    if size > max_bytes:
        refuse((), 'larger than %d bytes of JSON' % max_bytes)
    return ''.join(parts).encode('utf-8')


def add(parts, text):
    parts.append(text)
    return len(text)


def quote(text, stack):
    try:
        str.encode(text, 'utf-8')
    except UnicodeEncodeError:
        refuse(stack, 'a string with a lone surrogate')
    return '"' + str.translate(text, ESCAPES) + '"'


def refuse(stack, reason):
    place = ''
    for level in stack:
        key = level[2]
        if key is None:
            continue
        if isinstance(key, str):
            key = key.encode('utf-8', 'replace').decode('utf-8').replace('~', '~0').replace('/', '~1')
        place += '/%s' % key
        if len(place) > 512:
            place = place[:512] + '...'
            break
    raise Unrepresentable('result%s: %s' % (place, reason))
