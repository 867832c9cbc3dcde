# The process of a slot: it forks a child ahead of each request, in which the
# request is then run, and tells the worker how that ended. The child confines
# itself before it waits; it takes the request from the socket by itself, so
# nothing of it ever passes through this process, which runs no code but this.
#
# Everything that one run could leave behind for the next is the child's own:
# process namespace, mounts, /tmp, System V IPC. Before the answer leaves, the
# process namespace is dead, or, at the levels without one, every descendant.

import ctypes
import gc
import json
import select
import time
import _signal
from _socket import socket, socketpair

CONTROL, CANCEL, VALUE_FD = 4, 5, 4  # the value takes the place of the control socket
SETUP_FAILED = 98
INLINE = 36 << 10  # of the largest message, which holds a whole request unless it is in a file
HEADER = 16
STARTED, CANCELLED, OUT_OF_MEMORY, TOO_MANY, SOILED = 1, 2, 4, 8, 16
SAMPLE_EVERY = 10  # milliseconds
PAGE = posix.sysconf('SC_PAGE_SIZE')

CLONE_VM, CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWPID = 0x100, 0x20000, 0x8000000, 0x20000000
SIGCHLD, SIGKILL, EPERM = 17, 9, 1
PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER = 4, 22, 24, 36
PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 38, 47, 4
CAP_KILL, CAP_SETGID, CAP_SETUID, CAP_SYS_ADMIN = 5, 6, 7, 21
AT_FDCWD, AT_RECURSIVE, AT_EMPTY_PATH = -100, 0x8000, 0x1000
OPEN_TREE_CLONE, OPEN_TREE_CLOEXEC = 1, 0o2000000
MOVE_MOUNT_F_EMPTY_PATH = 4
# The same numbers on every architecture.
SYS_OPEN_TREE, SYS_MOVE_MOUNT, SYS_PIDFD_OPEN, SYS_CLOSE_RANGE = 428, 429, 434, 436
SYS_LANDLOCK_CREATE_RULESET, SYS_LANDLOCK_ADD_RULE, SYS_LANDLOCK_RESTRICT_SELF = 444, 445, 446

libc = ctypes.CDLL(None, use_errno=True)
system_call = libc.syscall
system_call.restype = ctypes.c_long
get_errno = ctypes.get_errno
long = ctypes.c_long


def check(result, step):
    if result < 0:
        number = get_errno()
        raise OSError(number, '%s: %s' % (step, posix.strerror(number)))
    return result


class Landlock:
    """A ruleset is made anew for each child, because it refers to mounts that are the child's own."""

    def __init__(self, plan, fresh):
        self.attr = (ctypes.c_uint64 * 3)(plan['fs'], plan['net'], plan['scoped'])
        self.opened, self.later = [], []
        for rule in plan['rules'] or ():
            path = rule['path']
            if any((path + '/').startswith(at + '/') for at in fresh):
                self.later.append(rule)
            else:
                packed = self.open(rule)
                if packed:
                    self.opened.append(packed)

    def open(self, rule):
        """The kernel's form of a rule: what the path is decides which rights it may hold."""
        try:
            fd = posix.open(rule['path'], posix.O_PATH | posix.O_CLOEXEC)
        except FileNotFoundError:
            if rule['optional']:
                return None
            raise
        access = rule['dir'] if posix.fstat(fd).st_mode & 0o170000 == 0o040000 else rule['file']
        return access.to_bytes(8, 'little') + fd.to_bytes(4, 'little')

    def restrict(self):
        ruleset = check(system_call(SYS_LANDLOCK_CREATE_RULESET, self.attr, long(24), 0), 'make Landlock ruleset')
        for rule in self.opened + [packed for packed in map(self.open, self.later) if packed]:
            check(system_call(SYS_LANDLOCK_ADD_RULE, ruleset, 1, rule, 0), 'add Landlock rule')
        check(system_call(SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0), 'enter Landlock domain')


class Filter:
    """A program for the kernel's filter machine, 8 bytes an instruction."""

    def __init__(self, program):
        self.program = ctypes.create_string_buffer(program, len(program))
        class Fprog(ctypes.Structure):
            _fields_ = [('length', ctypes.c_ushort), ('program', ctypes.c_void_p)]
        self.fprog = Fprog(len(program) // 8, ctypes.addressof(self.program))

    def install(self):
        check(libc.prctl(PR_SET_SECCOMP, 2, ctypes.byref(self.fprog), 0, 0), 'install system call filter')


class Child:
    """What the forked process does to itself before and after the request comes."""

    def __init__(self, settings):
        self.mounts = [(m['kind'].encode(), m['at'].encode(), m['flags'], m['options'].encode(), m['optional'])
                       for m in settings['mounts'] or ()]
        self.again = settings['again'] or ()
        self.dir = settings['dir']
        self.namespaces = settings['namespaces']
        self.uid, self.gid = settings['uid'], settings['gid']
        self.drop = settings['drop_caps']
        self.landlock = Landlock(settings['landlock'], [m['at'] for m in settings['mounts'] or ()]) if settings['landlock'] else None
        self.filter = Filter(bytes.fromhex(settings['filter'])) if settings['filter'] else None
        self.cap_header = (ctypes.c_uint32 * 2)(0x20080522, 0)
        self.no_caps = (ctypes.c_uint32 * 6)()

    def confine(self):
        posix.setsid()
        self.be_dumpable()
        if self.namespaces:
            check(libc.unshare(CLONE_NEWNS | CLONE_NEWIPC), 'separate mounts and IPC')
            self.mount()
        self.die_first()
        if self.gid >= 0:
            posix.setgroups([])
            posix.setresgid(self.gid, self.gid, self.gid)
        if self.uid >= 0:
            posix.setresuid(self.uid, self.uid, self.uid)
        posix.chdir(self.dir)
        if self.drop:
            libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
            check(libc.capset(self.cap_header, self.no_caps), 'drop capabilities')
        self.be_dumpable()
        if self.landlock:
            self.landlock.restrict()
        if self.filter:
            self.filter.install()
        _signal.pthread_sigmask(_signal.SIG_SETMASK, [])

    def be_dumpable(self):
        # The server is not, nor is what was just given another user: then the
        # files of /proc/self would be root's.
        check(libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), 'open /proc/self')

    def mount(self):
        # What the new /tmp will hide is mounted again on top of it.
        trees = [(path, check(system_call(SYS_OPEN_TREE, AT_FDCWD, path.encode(),
                                          OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE), 'open mount ' + path))
                 for path in self.again]
        for kind, at, flags, options, optional in self.mounts:
            done = libc.mount(kind, at, kind, long(flags), options)
            if not (optional and done < 0 and get_errno() == EPERM):
                check(done, 'mount ' + at.decode())
        for path, tree in trees:
            make_dirs(path)
            check(system_call(SYS_MOVE_MOUNT, tree, b'', AT_FDCWD, path.encode(), MOVE_MOUNT_F_EMPTY_PATH), 'mount ' + path)
            posix.close(tree)

    def die_first(self):
        # When memory runs out, before the server; as the cold start does.
        try:
            fd = posix.open('/proc/self/oom_score_adj', posix.O_WRONLY | posix.O_CLOEXEC)
        except OSError:
            return
        try:
            posix_write(fd, b'1000')
        except OSError:
            pass
        posix_close(fd)

    def receive(self, control, number):
        """Waits for the request; its descriptors become 1, 2 and VALUE_FD, all others are closed."""
        message, control_data, _, _ = control.recvmsg(INLINE, 64, 0x40000000)  # MSG_CMSG_CLOEXEC
        if not message:
            posix_exit(0)  # the worker does not need this slot any more
        if int.from_bytes(message[:8], 'little') != number:
            raise ValueError('request %d: expected %d' % (int.from_bytes(message[:8], 'little'), number))
        fds = []
        for _, _, data in control_data:
            fds += [int.from_bytes(data[i:i + 4], sys.byteorder) for i in range(0, len(data) // 4 * 4, 4)]
        size = int.from_bytes(message[8:HEADER], 'little')
        frame = message[HEADER:]
        if size:
            frame = read_exactly(fds[2], size)
        control.detach()
        posix.dup2(fds[0], 1)
        posix.dup2(fds[0], 2)
        posix.dup2(fds[1], VALUE_FD, False)
        return frame


def make_dirs(path):
    at = ''
    for part in path.split('/')[1:]:
        at += '/' + part
        try:
            posix.mkdir(at, 0o755)
        except FileExistsError:
            pass


def own_namespace():
    try:
        return posix.open('/proc/self/ns/pid', posix.O_RDONLY | posix.O_CLOEXEC)
    except OSError:  # a room without /proc
        return check(system_call(SYS_PIDFD_OPEN, posix.getpid(), 0), 'open own process namespace')


class Server:
    def __init__(self, settings):
        self.namespaces = settings['namespaces']
        self.child = Child(settings)
        self.control = socket(fileno=CONTROL)
        self.number = 0
        self.memory, self.pids, self.uncounted = settings['memory_bytes'], settings['pids'], settings['uncounted']
        self.sockets = open_sockets() if settings['own_net'] else None
        if self.namespaces:
            self.own = own_namespace()
            self.stack = ctypes.create_string_buffer(64 << 10)
            self.stack_top = ctypes.c_void_p((ctypes.addressof(self.stack) + len(self.stack) - 64) & ~63)
            self.pause = ctypes.cast(libc.pause, ctypes.c_void_p)
        else:
            check(libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 'become subreaper')

    def settle(self, drop_caps):
        """The last steps before the first fork: nothing after them may allocate much."""
        _signal.pthread_sigmask(_signal.SIG_SETMASK, _signal.valid_signals())
        check(libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), 'hide from tracers')
        if drop_caps:
            capability = 0
            while libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0:
                capability += 1
            needed = 0
            if self.namespaces:
                needed |= 1 << CAP_SYS_ADMIN
            if self.child.uid >= 0:
                needed |= 1 << CAP_SETUID | 1 << CAP_SETGID | 1 << CAP_KILL
            keep = (ctypes.c_uint32 * 6)(needed, needed)
            libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
            check(libc.capset(self.child.cap_header, keep), 'drop capabilities')
            check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 'set no_new_privs')
        rehearse()
        gc.collect()
        gc.freeze()

    def serve(self):
        """Returns in a child, with the request."""
        while True:
            self.number += 1
            try:
                init = self.start_init()
                taken, taking = posix.pipe2(posix.O_CLOEXEC | posix.O_NONBLOCK)
                pid = posix.fork()
                if pid == 0:
                    return self.spare(taking)
                posix.close(taking)
                if self.namespaces:
                    check(libc.setns(self.own, CLONE_NEWPID), 'return to own process namespace')
            except BaseException as error:
                fail('start of a child', error)
            flags = self.wait(pid, init)
            _, status, usage = posix.wait4(pid, 0)
            tasks = measure(init)[1] + 1 if status else 0
            cpu, rss = cpu_of(usage), usage.ru_maxrss
            if init:
                posix.kill(init, SIGKILL)
                _, _, usage = posix.wait4(init, 0)  # returns when its namespace is empty
                cpu, rss = cpu + cpu_of(usage), max(rss, usage.ru_maxrss)
            else:
                cpu, rss = self.reap(cpu, rss)
            if was_taken(taken):
                flags |= STARTED
            if self.sockets is not None and not clear_sockets(self.sockets):
                flags |= SOILED
            if not flags & (STARTED | CANCELLED):
                if status:
                    complain('a child ended before its request came, wait status %d' % status)
                posix_exit(SETUP_FAILED)
            self.report(status, flags, cpu, rss, tasks)

    def start_init(self):
        """The first process of a namespace of its own for the child that comes next."""
        if not self.namespaces:
            return 0
        check(libc.unshare(CLONE_NEWPID), 'make process namespace')
        return check(libc.clone(self.pause, self.stack_top, CLONE_VM | SIGCHLD, None), 'start init')

    def wait(self, pid, init):
        """Waits for the end of the child, or ends it when the worker says so or a limit does."""
        fd = check(system_call(SYS_PIDFD_OPEN, pid, 0), 'open child')
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        poll.register(CANCEL, select.POLLIN)
        pause = SAMPLE_EVERY if self.memory or self.pids else None
        flags = 0
        while True:
            ready = dict(poll.poll(pause))
            if fd in ready:
                break
            if CANCEL in ready:
                order = posix_read(CANCEL, 8)
                if not order:  # the worker is gone
                    posix.kill(init or pid, SIGKILL)
                    posix_exit(0)
                # An order for an earlier run came too late, and means nothing.
                if int.from_bytes(order, 'little') == self.number:
                    flags |= CANCELLED
            elif not flags:
                size, tasks = measure(init)
                if self.memory and size > self.memory:
                    flags |= OUT_OF_MEMORY
                elif self.pids and self.uncounted and tasks > self.pids:
                    flags |= TOO_MANY
            if flags:
                posix.kill(init or pid, SIGKILL)
                pause = None
        posix_close(fd)
        return flags

    def reap(self, cpu, rss):
        """Kills and reaps what the child left behind, however it detached itself."""
        pause = 0.00005
        while True:
            for pid in children():
                try:
                    posix.kill(pid, SIGKILL)  # not reaped yet, so the number is still its own
                except ProcessLookupError:
                    pass
            try:
                while True:
                    pid, _, usage = posix.wait4(-1, posix.WNOHANG)
                    if pid == 0:
                        break
                    cpu, rss = cpu + cpu_of(usage), max(rss, usage.ru_maxrss)
            except ChildProcessError:
                return cpu, rss
            time.sleep(pause)
            pause = min(2 * pause, 0.005)

    def report(self, status, flags, cpu, rss, tasks):
        message = (self.number.to_bytes(8, 'little') + status.to_bytes(4, 'little')
                   + flags.to_bytes(4, 'little')
                   + cpu.to_bytes(8, 'little') + (rss << 10).to_bytes(8, 'little') + tasks.to_bytes(8, 'little'))
        try:
            self.control.send(message)
        except OSError:
            posix_exit(0)

    def spare(self, taking):
        try:
            self.child.confine()
            rehearse()
            if self.number == 1:
                self.control.send(b'ready')
            frame = self.child.receive(self.control, self.number)
            posix_write(taking, b'1')
            check(system_call(SYS_CLOSE_RANGE, VALUE_FD + 1, long(0xffffffff), 0), 'close descriptors')
            posix_close(3)
            return frame
        except BaseException as error:
            fail('set-up of a child', error)


def fail(step, error):
    # Not to be repeated: the worker takes another way.
    complain('%s: %s: %s' % (step, type(error).__name__, error))
    posix_exit(SETUP_FAILED)


def was_taken(fd):
    try:
        return posix_read(fd, 1) == b'1'
    except BlockingIOError:
        return False
    finally:
        posix_close(fd)


def open_sockets():
    """The list of the unix sockets of the network namespace: this process has none there."""
    try:
        return posix.open('/proc/self/net/unix', posix.O_RDONLY | posix.O_CLOEXEC)
    except OSError:
        return -1  # a room without /proc


def clear_sockets(fd):
    """Frees what a run left; False when something is still there for the next one to see.

    Sockets that were sent over each other in a ring outlive the processes, and
    so do their names. The kernel looks for rings when it closes a unix socket.
    """
    for pause in (0.0002, 0.001, 0.005, 0.02, 0.05):
        if fd >= 0 and posix.pread(fd, 4096, 0).count(b'\n') <= 1:
            return True
        for end in socketpair():
            end.close()
        if fd < 0:
            return True
        time.sleep(pause)
    return False


def cpu_of(usage):
    return int((usage.ru_utime + usage.ru_stime) * 1000000000)


def children(of='thread-self'):
    try:
        fd = posix.open('/proc/%s/children' % of, posix.O_RDONLY | posix.O_CLOEXEC)
    except FileNotFoundError:
        return children_by_scan() if of == 'thread-self' else []
    try:
        data = b''
        while True:
            part = posix_read(fd, 65536)
            if not part:
                return [int(pid) for pid in data.split()]
            data += part
    finally:
        posix_close(fd)


def children_by_scan():
    # For kernels without CONFIG_PROC_CHILDREN.
    mine, found = str(posix.getpid()).encode(), []
    for name in posix.listdir('/proc'):
        if name.isdigit():
            try:
                fd = posix.open('/proc/%s/stat' % name, posix.O_RDONLY | posix.O_CLOEXEC)
                stat = posix_read(fd, 4096)
                posix_close(fd)
            except OSError:
                continue
            if stat.rpartition(b')')[2].split()[1] == mine:
                found.append(int(name))
    return found


def measure(init):
    """The resident memory and the threads of the run at hand. Shared pages count for each process."""
    try:
        if init:
            pids = [int(name) for name in posix.listdir('/proc') if name.isdigit()]
            mine = posix.getpid()
            pids = [pid for pid in pids if pid > mine and pid != init]
        else:
            pids = children()
            for pid in pids:
                pids += children('%d/task/%d' % (pid, pid))
    except OSError:
        return 0, 0
    size = tasks = 0
    for pid in pids:
        try:
            tasks += posix.stat('/proc/%d/task' % pid).st_nlink - 2
            fd = posix.open('/proc/%d/statm' % pid, posix.O_RDONLY | posix.O_CLOEXEC)
            size += int(posix_read(fd, 256).split()[1]) * PAGE
            posix_close(fd)
        except (OSError, IndexError):
            pass
    return size, tasks


def rehearse():
    # Touches the pages that every run writes to, before the request comes.
    exec(compile('def f(a, *b):\n return [c for c in b]\nf(1, 2)', '<rehearsal>', 'exec', 0, True), {'__builtins__': builtins})


def preload(names):
    import linecache, tokenize, traceback, threading, resource  # what the bootstrap itself may need
    for name in names:
        try:
            __import__(name)
        except ImportError as error:
            complain('preload %s: %s' % (name, error))


def main():
    settings = json.loads(read_exactly(3, int.from_bytes(read_exactly(3, 4), 'little')))
    posix_close(3)
    posix.dup2(0, 3, False)  # stays taken, so that no descriptor of this process has the number
    open_streams()
    preload(settings['preload'] or ())
    try:
        server = Server(settings)
        server.settle(settings['drop_caps'])
    except BaseException as error:
        fail('set-up', error)
    frame = server.serve()
    at = 0

    def read(size):
        nonlocal at
        at += size
        return frame[at - size:at]

    run(Request(read), ValuePipe(VALUE_FD))


main()
