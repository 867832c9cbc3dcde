# A fresh interpreter: one frame from descriptor 3, the value to descriptor 4.
# Where nobody sends anything, it was started ahead and is not needed.

REQUEST, VALUE = 3, 4


def cold():
    posix.set_inheritable(REQUEST, False)
    posix.set_inheritable(VALUE, False)
    open_streams()
    try:
        request = Request(lambda size: read_exactly(REQUEST, size))
    except EOFError:
        posix_exit(0)
    posix_close(REQUEST)
    run(request, ValuePipe(VALUE))


cold()
