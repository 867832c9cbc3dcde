# How an exception that nobody caught is shown: as the interpreter does, with
# the source lines of the code, without the frames of this bootstrap.


def report(error):
    trace = strip(error)
    hook = sys_excepthook()
    if hook is None:
        return
    try:
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
        if hook is default_hook:
            show(error)
        else:
            hook(type(error), error, trace)
    except SystemExit as exit:
        return exit_status(exit)
    except BaseException as second:
        complain('Error in sys.excepthook:')
        strip(second)
        show(second)
        complain('\nOriginal exception was:')
        show(error)


def strip(error):
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals is own:
        trace = trace.tb_next
    error.__traceback__ = trace
    return trace


def sys_excepthook():
    hook = getattr(sys, 'excepthook', None)
    if hook is None:
        complain('sys.excepthook is missing')
    return hook


def show(error):
    try:
        import traceback
        traceback.print_exception(type(error), error, error.__traceback__)
    except BaseException:
        # Out of memory, or the code broke the module: the interpreter's own.
        default_hook(type(error), error, error.__traceback__)


def exit_status(exit):
    code = exit.code
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xff if -1 << 63 <= code < 1 << 63 else 0xff
    try:
        sys.stderr.write(str(code) + '\n')
    except BaseException:
        complain('SystemExit: its argument cannot be shown')
    return 1


def remember_source(filename, code):
    # linecache is slow to import: the lines are put there when it is wanted.
    def remember(linecache):
        try:
            linecache.cache[filename] = (len(code), None, lines_of(code), filename)
        except Exception:
            pass

    module = modules.get('linecache')
    if module is not None:
        remember(module)
    else:
        sys.meta_path.insert(0, SourceFinder(remember))


def lines_of(code):
    if b'coding' not in code[:400] and b'\r' not in code and code[:3] != b'\xef\xbb\xbf':
        text = code.decode('utf-8', 'replace')
    else:
        import io
        import tokenize
        encoding, _ = tokenize.detect_encoding(io.BytesIO(code).readline)
        text = io.TextIOWrapper(io.BytesIO(code), encoding, 'replace').read()
    lines = text.split('\n')
    if not lines[-1]:
        lines.pop()
    return [line + '\n' for line in lines]


class SourceFinder:
    def __init__(self, remember):
        self.remember = remember

    def find_spec(self, name, path=None, target=None):
        if name != 'linecache':
            return None
        sys.meta_path.remove(self)
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                spec.loader = SourceLoader(spec.loader, self.remember)
                return spec
        return None


class SourceLoader:
    def __init__(self, loader, remember):
        self.loader = loader
        self.remember = remember

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        self.remember(module)
