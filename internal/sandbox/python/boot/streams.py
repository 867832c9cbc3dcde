# Standard streams. Standard output is the interpreter's own object; standard
# error passes every write on at once, after what standard output still holds,
# so that both arrive at their common descriptor in the order written.

from _io import BufferedWriter, FileIO, TextIOWrapper


class Stderr(FileIO):
    def write(self, data):
        # The code may have replaced, closed or detached either of the two.
        for stream in (stdout, getattr(sys, 'stdout', None)):
            if stream is not None and type(stream) is TextIOWrapper:
                try:
                    stream.flush()
                except Exception:
                    pass
        view = memoryview(data).cast('B')
        sent = 0
        while sent < len(view):
            n = FileIO.write(self, view[sent:])
            if n is None:  # somebody made the descriptor non-blocking
                raise BlockingIOError(11, 'write could not complete without blocking', sent)
            sent += n
        return sent


def open_streams():
    global stdout
    stdout = sys.stdout
    stdout.reconfigure(encoding='utf-8', errors='strict', line_buffering=False)
    raw = Stderr(2, 'w', closefd=False)
    raw.name = '<stderr>'
    stderr = TextIOWrapper(raw, 'utf-8', 'backslashreplace', newline='\n', write_through=True)
    stderr.mode = 'w'
    sys.stderr = sys.__stderr__ = stderr


def flush_streams():
    # False when something could not be written, as at the interpreter's exit.
    done = True
    current = getattr(sys, 'stdout', None)
    try:
        if current is not None and not is_closed(current):
            current.flush()
    except BaseException as error:
        done = False
        complain('Exception ignored in: %s\n%s: %s' % (name_of(current), type(error).__name__, error))
    try:
        if not is_closed(getattr(sys, 'stderr', None)):
            sys.stderr.flush()
    except BaseException:
        done = False
    if current is not stdout:
        try:
            stdout.flush()
        except BaseException:
            pass
    return done


def is_closed(stream):
    try:
        return stream is None or bool(stream.closed)
    except BaseException:
        return False


def name_of(thing):
    try:
        return repr(thing)
    except BaseException:
        return object.__repr__(thing)


def complain(text):
    # To the descriptor itself: whatever the code did to sys.stderr.
    try:
        write_all(2, (text + '\n').encode('utf-8', 'backslashreplace'))
    except OSError:
        pass
