"""emulator.py PROGRAM [ARGUMENTS]: runs a static x86-64 Linux program on the CPU model of Bochs.

The model is of the Ice Lake class: AVX-512 F, VL, DQ, BW, IFMA. Memory is one flat 256 MiB region, mapped onto
itself; system calls land in a stub page, where a hook answers them here. The exit status is the program's.

TEST_TRACE=1 prints every system call, TEST_STATISTICS=1 the CPU time and the number of instructions (slow).
"""

import ctypes
import errno
import mmap
import os
import struct
import sys
import time

import bochscpu
import bochscpu.cpu
import bochscpu.memory

MEMORY = 1 << 28
PAGE = 4096
# Memory map. Programs of fixed position are linked above 4 MiB; the memory below is used by the emulator.
PAGE_TABLES = 0x1000
SYSCALL_STUB = 0x8000
RELOCATABLE = 0x0200_0000
MAPPINGS = 0x0800_0000
STACK_TOP = 0x0FF0_0000
STACK_LIMIT = STACK_TOP - (8 << 20)

CODE_64, DATA = (0x33, 0xA0FB), (0x2B, 0xC0F3)  # selector and attributes, user mode
EXCEPTION_INVALID_OPCODE = 6


class Memory:
    """Memory of the program, shared with this process."""

    def __init__(self):
        no_reserve = 0x4000
        self.bytes = mmap.mmap(-1, MEMORY, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | no_reserve)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self.bytes))
        for page in range(0, MEMORY, PAGE):
            bochscpu.memory.page_insert(page, base + page)
        self.map_onto_itself()

    def map_onto_itself(self):
        present_writable_user, large = 7, 0x80
        directory = PAGE_TABLES + 2 * PAGE
        self.write(PAGE_TABLES, struct.pack("<Q", (PAGE_TABLES + PAGE) | present_writable_user))
        self.write(PAGE_TABLES + PAGE, struct.pack("<Q", directory | present_writable_user))
        for i in range(MEMORY >> 21):
            self.write(directory + 8 * i, struct.pack("<Q", (i << 21) | large | present_writable_user))
        self.write(SYSCALL_STUB, b"\x48\x0f\x07")  # sysretq: the hook implements the call

    def write(self, address, data):
        self.bytes[address : address + len(data)] = bytes(data)

    def read(self, address, length):
        return self.bytes[address : address + length]


class Program:
    """An ELF file in memory."""

    def __init__(self, path, memory):
        image = open(path, "rb").read()
        if image[:5] != b"\x7fELF\x02" or image[18] != 62:
            sys.exit("emulator: not an x86-64 ELF file")
        relocatable = struct.unpack_from("<H", image, 16)[0] == 3
        bias = RELOCATABLE if relocatable else 0
        entry, table = struct.unpack_from("<QQ", image, 24)
        self.header_size, self.headers = struct.unpack_from("<HH", image, 54)
        self.entry, self.end, self.header_address = bias + entry, 0, 0
        for i in range(self.headers):
            fields = struct.unpack_from("<IIQQQQQQ", image, table + i * self.header_size)
            kind, _, offset, address, _, in_file, in_memory, _ = fields
            if kind == 3:
                sys.exit("emulator: a dynamic program; link it with -C target-feature=+crt-static")
            if kind == 1:
                memory.write(bias + address, image[offset : offset + in_file])
                self.end = max(self.end, bias + address + in_memory)
                if offset <= table < offset + in_file:
                    self.header_address = bias + address + table - offset
        self.end = (self.end + 0xFFFF) & ~0xFFFF


def build_stack(memory, program, arguments):
    """Writes arguments, environment and auxiliary vector as the kernel does; returns the stack pointer."""
    top = STACK_TOP

    def push(data):
        nonlocal top
        top -= len(data)
        memory.write(top, data)
        return top

    environment = [
        push(f"{name}={value}\0".encode()) for name, value in os.environ.items() if name.startswith(("RUST_", "TEST_"))
    ]
    argv = [push(argument.encode() + b"\0") for argument in arguments]
    platform, random = push(b"x86_64\0"), push(os.urandom(16))
    auxiliary = {
        3: program.header_address,
        4: program.header_size,
        5: program.headers,
        6: PAGE,
        9: program.entry,
        11: 0, 12: 0, 13: 0, 14: 0,  # user and group
        15: platform,
        16: 0x0FEBFBFF,  # CPUID leaf 1, edx
        17: 100,  # clock ticks
        23: 0,  # not set-user-id
        25: random,
        31: argv[0],
        51: 0xD80,  # the least signal stack with AVX-512 state
        0: 0,
    }
    words = [len(argv), *argv, 0, *environment, 0]
    words += [word for pair in auxiliary.items() for word in pair]
    top = (top - 8 * len(words)) & ~15
    memory.write(top, struct.pack(f"<{len(words)}Q", *words))
    return top


class Kernel:
    """Implements the few system calls that a static, single-threaded Rust program makes."""

    def __init__(self, memory, program, session):
        self.memory, self.session = memory, session
        self.heap_start = self.heap = program.end
        self.next_mapping = MAPPINGS
        self.status = None
        self.unknown = set()
        self.calls = {
            1: self.write, 20: self.writev, 12: self.brk, 9: self.mmap, 25: self.mremap, 158: self.arch_prctl,
            228: self.clock_gettime, 318: self.getrandom, 302: self.prlimit, 204: self.sched_getaffinity,
            60: self.exit, 231: self.exit, 200: self.killed, 62: self.killed, 234: self.killed_thread,
        }  # fmt: skip
        harmless = (0, 3, 7, 10, 11, 13, 14, 15, 24, 27, 28, 35, 72, 131, 202, 230, 273)
        self.calls.update({number: lambda *_: 0 for number in harmless})
        self.calls.update({number: lambda *_: 1000 for number in (39, 186, 218)})  # process and thread
        self.refuse(errno.ENOENT, 2, 4, 21, 79, 89, 257, 267, 269)  # files
        self.refuse(errno.EBADF, 5, 262)
        self.refuse(errno.ENOTTY, 16)
        self.refuse(errno.EAGAIN, 56, 57, 58)  # no threads: libtest then runs a test on the main one
        self.refuse(errno.ENOSYS, 332, 334, 435)

    def refuse(self, error, *numbers):
        self.calls.update({number: lambda *_: -error for number in numbers})

    def call(self, cpu):
        """Performs the call in the CPU's registers."""
        number = cpu.rax & 0xFFFFFFFF
        arguments = (cpu.rdi, cpu.rsi, cpu.rdx, cpu.r10, cpu.r8, cpu.r9)
        self.cpu = cpu
        if number in self.calls:
            result = self.calls[number](*arguments)
        else:
            self.unknown.add(number)
            result = -errno.ENOSYS
        if os.environ.get("TEST_TRACE"):
            print(f"system call {number} {[hex(a) for a in arguments]} = {result}", file=sys.stderr)
        cpu.rax = result & (2**64 - 1)

    def write(self, file, address, length, *_):
        if file not in (1, 2):
            return -errno.EBADF
        return os.write(file, self.memory.read(address, length))

    def writev(self, file, vector, count, *_):
        total = 0
        for i in range(count):
            address, length = struct.unpack("<QQ", self.memory.read(vector + 16 * i, 16))
            total += self.write(file, address, length) if length else 0
        return total

    def brk(self, end, *_):
        if self.heap_start <= end < MAPPINGS:
            self.heap = end
        return self.heap

    def mmap(self, address, length, _protection, flags, *_):
        fixed, anonymous = 0x10, 0x20
        if not flags & anonymous:
            return -errno.ENODEV
        if flags & fixed:
            self.memory.write(address, bytes(length))
            return address
        start = self.next_mapping
        if start + length > STACK_LIMIT:
            return -errno.ENOMEM
        self.next_mapping += (length + 0xFFFF) & ~0xFFFF
        return start

    def mremap(self, old, old_length, new_length, *_):
        new = self.mmap(0, new_length, 0, 0x20)
        if new > 0:
            self.memory.write(new, self.memory.read(old, min(old_length, new_length)))
        return new

    def arch_prctl(self, code, address, *_):
        set_fs = 0x1002
        if code != set_fs:
            return -errno.EINVAL
        self.cpu.fs = segment((0, DATA[1]), address)
        return 0

    def clock_gettime(self, clock, address, *_):
        now = time.clock_gettime_ns(clock if clock < 8 else time.CLOCK_MONOTONIC)
        self.memory.write(address, struct.pack("<QQ", *divmod(now, 10**9)))
        return 0

    def getrandom(self, address, length, *_):
        self.memory.write(address, os.urandom(length))
        return length

    def prlimit(self, _process, _resource, _new, old, *_):
        if old:
            self.memory.write(old, struct.pack("<QQ", 8 << 20, 8 << 20))
        return 0

    def sched_getaffinity(self, _process, _length, address, *_):
        self.memory.write(address, struct.pack("<Q", 1))
        return 8

    def exit(self, status, *_):
        return self.stop(status & 255)

    def killed(self, _process, signal, *_):
        return self.stop(128 + signal)

    def killed_thread(self, _process, _thread, signal, *_):
        return self.stop(128 + signal)

    def stop(self, status):
        self.status = status
        self.session.stop()
        return 0


def segment(selector_and_attributes, base=0):
    segment = bochscpu.Segment()
    segment.present, segment.base, segment.limit = True, base, 0xFFFFFFFF
    segment.selector, segment.attr = selector_and_attributes
    return segment


def initial_state(entry, stack):
    state = bochscpu.State()
    bochscpu.cpu.set_long_mode(state)
    state.cr3 = PAGE_TABLES
    state.cr4 = 1 << 5 | 1 << 9 | 1 << 10 | 1 << 16 | 1 << 18  # PAE, SSE and its exceptions, FSGSBASE, XSAVE
    state.xcr0 = 0xE7  # x87, SSE, AVX, AVX-512
    state.mxcsr, state.mxcsr_mask, state.fpcw = 0x1F80, 0xFFFF, 0x37F
    state.star, state.lstar, state.sfmask = 0x23 << 48 | 0x10 << 32, SYSCALL_STUB, 0x700
    state.rflags = 2
    state.cs = segment(CODE_64)
    for name in ("ds", "ss", "es", "fs", "gs"):
        setattr(state, name, segment(DATA))
    state.rip, state.rsp = entry, stack
    return state


def main():
    memory = Memory()
    program = Program(sys.argv[1], memory)
    session = bochscpu.Session()
    kernel = Kernel(memory, program, session)
    stack = build_stack(memory, program, sys.argv[1:])

    def missing_page(address):
        sys.stderr.write(f"emulator: no memory at {address:#x}\n")
        sys.stderr.flush()
        os._exit(128 + 11)

    def far_branch(session, *_):
        if session.cpu.rip == SYSCALL_STUB:
            kernel.call(session.cpu)

    def exception(session, _cpu, vector, error=0, *_):
        cpu = session.cpu
        sys.stderr.write(f"emulator: exception {int(vector)} at {cpu.rip:#x}, cr2 {cpu.cr2:#x}\n")
        kernel.stop(128 + (4 if int(vector) == EXCEPTION_INVALID_OPCODE else 11))

    hook = bochscpu.Hook()
    hook.far_branch, hook.exception = far_branch, exception
    instructions = [0]
    statistics = os.environ.get("TEST_STATISTICS")
    if statistics:
        def count(*_):
            instructions[0] += 1

        hook.after_execution = count

    session.missing_page_handler = missing_page
    session.cpu.state = initial_state(program.entry, stack)
    start = time.process_time()
    session.run([hook])
    if statistics:
        seconds = time.process_time() - start
        print(f"emulator: {seconds:.2f} s, {instructions[0]} instructions", file=sys.stderr)
    if kernel.unknown:
        print(f"emulator: unknown system calls {sorted(kernel.unknown)}", file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(125 if kernel.status is None else kernel.status)


main()
