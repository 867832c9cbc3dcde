import marshal, posix, sys
def read(size):
    data = b''
    while len(data) < size:
        part = posix.read(3, size - len(data))
        if not part:
            posix._exit(97 if data else 0)
        data += part
    return data
if int.from_bytes(read(4), 'little') != sys.hexversion:
    posix.write(2, b'the interpreter was replaced since the worker started\n')
    posix._exit(97)
code = marshal.loads(read(int.from_bytes(read(4), 'little')))
exec(code, {'__name__': 'toolworker', '__builtins__': dict(vars(__import__('builtins')))})
