# One run: what the interpreter does with a script, from the first line to the
# exit status, and the variable result beside it.


class Request:
    """One frame: the header is HEADER bytes, then limits, name, code and input."""

    HEADER = 32

    def __init__(self, read):
        header = read(self.HEADER)
        if header[:4] != b'PYR1':
            raise ValueError('not a request frame')
        # Little-endian, as every machine that this runs on.
        _, name, code, data, self.value_bytes, self.value_depth, limits, _ = memoryview(header).cast('I')
        bounds = memoryview(read(24 * limits)).cast('Q').tolist() if limits else []
        self.limits = [(bounds[i], bounds[i + 1], bounds[i + 2]) for i in range(0, len(bounds), 3)]
        self.name = read(name).decode('utf-8', 'replace')
        self.code = read(code)
        self.input = read(data)


class ValuePipe:
    """The descriptor of the value, and which file it was before the code ran."""

    def __init__(self, fd):
        self.fd = fd
        self.owner = posix_getpid()
        self.file = posix_fstat(fd)[:3]

    def send(self, tag, payload):
        if posix_getpid() != self.owner:
            return  # a fork of the code's, come to its own end
        # Closed by the code, and perhaps opened again as a file of its own.
        if posix_fstat(self.fd)[:3] != self.file:
            raise OSError(9, 'the code closed the descriptor of result')
        write_all(self.fd, tag + len(payload).to_bytes(4, 'little') + payload)


def run(request, pipe):
    """Runs the request and ends the process."""
    status = 1
    fatal = False
    hit = None
    main = ModuleType('__main__')
    modules['__main__'] = main
    scope = main.__dict__
    scope['__builtins__'] = builtins
    filename = '<%s>' % request.name
    sys.argv = [request.name]
    remember_source(filename, request.code)
    try:
        for limit in request.limits:
            set_limit(*limit)
        scope['input_data'] = parse_input(request.input)
        request.input = None
        exec(compile(request.code, filename, 'exec', 0, True), scope)
        status = 0
    except SystemExit as exit:
        status = exit_status(exit)
    except KeyboardInterrupt as error:
        report(error)
        fatal = True
    except BaseException as error:
        hit = limit_of(error)
        status = exit_status_of(report(error))
    try:
        settrace(None)
        setprofile(None)
        setrecursionlimit(max(getrecursionlimit(), 1000))
        join_threads()
        run_exit_functions()
        send_limit(hit, pipe)
        status = send_value(scope, request, pipe) or status
        release(scope)
    except BaseException as error:
        strip(error)
        show(error)
        status = status or 1
    if not flush_streams():
        status = 120
    if fatal:
        interrupt()
    posix_exit(status)


def exit_status_of(reported):
    # A status that sys.excepthook asked for, by SystemExit.
    return 1 if reported is None else reported


def set_limit(number, soft, hard):
    import resource
    _, highest = resource.getrlimit(number)
    if highest != resource.RLIM_INFINITY:
        soft, hard = min(soft, highest), min(hard, highest)
    resource.setrlimit(number, (soft, hard))


class Scanner:
    strict = True
    object_hook = object_pairs_hook = None
    parse_float, parse_int = float, int

    @staticmethod
    def parse_constant(name):
        raise ValueError('%s in the input' % name)


def parse_input(data):
    text = data.decode('utf-8').strip(' \t\r\n')
    if text == '{}':
        return {}
    # Integers of any length, nesting as deep as the sender's decoder allows.
    digits, depth = get_int_digits(), getrecursionlimit()
    set_int_digits(0)
    setrecursionlimit(max(depth, 20000))
    try:
        try:
            from _json import make_scanner
            value, end = make_scanner(Scanner)(text, 0)
        except (ImportError, AttributeError, TypeError):
            from json import loads
            value, end = loads(text), len(text)
        if end != len(text):
            raise ValueError('more than one JSON value in the input')
        return value
    finally:
        setrecursionlimit(depth)
        set_int_digits(digits)


def join_threads():
    threading = modules.get('threading')
    if threading is not None:
        try:
            if thread_count() or getattr(threading, '_threading_atexits', True):
                threading._shutdown()
        except BaseException as error:
            strip(error)
            show(error)


def run_exit_functions():
    atexit = modules.get('atexit')
    if atexit is not None:
        try:
            atexit._run_exitfuncs()
        except BaseException:
            pass  # shown by atexit itself


def limit_of(error):
    """The limit that an exception ran into, for which the kernel sends no signal."""
    kind = type(error)
    if issubclass(kind, MemoryError):
        return b'memory_bytes'
    if issubclass(kind, OSError):
        try:
            return {27: b'file_size_bytes', 24: b'open_files'}.get(error.errno)
        except BaseException:
            return None
    if kind is RuntimeError and error.args == ("can't start new thread",):
        return b'pids'
    return None


def send_limit(name, pipe):
    if name:
        try:
            pipe.send(b'l', name)
        except BaseException:
            pass  # nobody misses it


def send_value(scope, request, pipe):
    if 'result' not in scope:
        return 0
    set_int_digits(0)
    try:
        payload, tag = encode_value(scope['result'], request.value_bytes, request.value_depth), b'v'
    except BaseException as error:
        payload, tag = describe(error).encode('utf-8', 'replace')[:4096], b'e'
    try:
        pipe.send(tag, payload)
    except BaseException as error:
        complain('result cannot be sent: %s' % describe(error))
        return 1
    return 0


def describe(error):
    if type(error) is Unrepresentable:
        return str(error)
    return 'result: %s: %s' % (type(error).__name__, error)


def release(scope):
    # As at the interpreter's exit: what the code left open is closed, and so
    # written. Not while daemon threads still use it; those end with the process.
    flush_files()
    if thread_count() == 0:
        sys.last_type = sys.last_value = sys.last_traceback = None
        names = [name for name in scope if type(name) is str and name != '__builtins__']
        for private in (True, False):
            for name in names:
                if (name[:1] == '_' and name[:2] != '__') is private:
                    scope[name] = None
        collect()


def flush_files():
    for thing in get_objects():
        if issubclass(type(thing), (TextIOWrapper, BufferedWriter)) and thing is not stdout:
            try:
                thing.flush()
            except BaseException:
                pass


def interrupt():
    set_signal(SIGINT, SIG_DFL)
    posix_kill(posix_getpid(), SIGINT)
