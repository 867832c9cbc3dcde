# A fresh interpreter that is started ahead and runs one request: as a cold
# start, with the modules imported already. PRELOAD is put before this text.

REQUEST, VALUE, READY = 3, 4, 5


def spare():
    for fd in (REQUEST, VALUE, READY):
        posix.set_inheritable(fd, False)
    open_streams()
    import linecache, tokenize, traceback, threading, resource  # what the bootstrap itself may need
    for name in PRELOAD:
        try:
            __import__(name)
        except ImportError as error:
            complain('preload %s: %s' % (name, error))
    posix_close(READY)
    try:
        request = Request(lambda size: read_exactly(REQUEST, size))
    except EOFError:
        posix_exit(0)
    posix_close(REQUEST)
    run(request, ValuePipe(VALUE))


spare()
