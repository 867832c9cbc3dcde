# References that the code cannot take away. These files run as one module in a
# namespace of their own, with builtins of their own: whatever the code does to
# builtins, sys or json, what follows it still finds what it needs.

import builtins
import posix
import sys
from _signal import SIG_DFL, SIGINT, signal as set_signal
from _thread import _count as thread_count
from gc import collect, get_objects

own = globals()
modules = sys.modules
default_hook = sys.excepthook
settrace, setprofile = sys.settrace, sys.setprofile
getrecursionlimit, setrecursionlimit = sys.getrecursionlimit, sys.setrecursionlimit
set_int_digits = getattr(sys, 'set_int_max_str_digits', lambda digits: None)
get_int_digits = getattr(sys, 'get_int_max_str_digits', lambda: 0)
posix_read, posix_write, posix_exit = posix.read, posix.write, posix._exit
posix_fstat, posix_close = posix.fstat, posix.close
posix_kill, posix_getpid = posix.kill, posix.getpid
ModuleType = type(sys)


def read_exactly(fd, size):
    data = bytearray()
    while len(data) < size:
        part = posix_read(fd, min(size - len(data), 1 << 20))
        if not part:
            raise EOFError
        data += part
    return bytes(data)


def write_all(fd, data):
    view = memoryview(data)
    while len(view):
        view = view[posix_write(fd, view):]
