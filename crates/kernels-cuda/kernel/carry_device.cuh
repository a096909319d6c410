// Carry chains in PTX. A chain is one asm statement, because the carry flag is not preserved between statements.
//
// Operations on numbers of L words, from the least significant word up:
//   mad        acc += b * (a[0] + a[2] 2^64 + a[4] 2^128 ...); the carry is added to `top`
//   mad_after  low += addend first, and its carry goes into acc, one word above `low`
//   add        r += b; returns the carry
//   ripple     r += one word; returns the carry
// mad.lo and madc.hi of the same factors are one wide multiply-add (IMAD.WIDE.U32.X) on the GPU.

#pragma once

// r += b; returns the carry.
INLINE word add_carry(word &r, word b) {
    word carry;
    asm("add.cc.u32 %0, %0, %2;\n addc.u32 %1, 0, 0;" : "+r"(r), "=&r"(carry) : "r"(b));
    return carry;
}

template <int L> struct Chain;

#define Q_PAIR(lo, hi, x, b, c) "mad" c ".lo.cc.u32 %" lo ", %" x ", %" b ", %" lo ";\n" \
                                "madc.hi.cc.u32 %" hi ", %" x ", %" b ", %" hi ";\n"

template <> struct Chain<8> {
    INLINE static void mad(word *r, const word *a, word b, word &top) {
        asm(Q_PAIR("0", "1", "9", "13", "") Q_PAIR("2", "3", "10", "13", "c") Q_PAIR("4", "5", "11", "13", "c")
            Q_PAIR("6", "7", "12", "13", "c") "addc.u32 %8, %8, 0;"
            : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "+r"(r[6]), "+r"(r[7]), "+r"(top)
            : "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(a[6]), "r"(b));
    }
    INLINE static void mad_after(word &low, word addend, word *r, const word *a, word b, word &top) {
        asm("add.cc.u32 %9, %9, %15;\n"
            Q_PAIR("0", "1", "10", "14", "c") Q_PAIR("2", "3", "11", "14", "c") Q_PAIR("4", "5", "12", "14", "c")
            Q_PAIR("6", "7", "13", "14", "c") "addc.u32 %8, %8, 0;"
            : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "+r"(r[6]), "+r"(r[7]), "+r"(top), "+r"(low)
            : "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(a[6]), "r"(b), "r"(addend));
    }
    INLINE static word add(word *r, const word *b) {
        word carry;
        asm("add.cc.u32 %0, %0, %9;\n addc.cc.u32 %1, %1, %10;\n addc.cc.u32 %2, %2, %11;\n addc.cc.u32 %3, %3, %12;\n"
            "addc.cc.u32 %4, %4, %13;\n addc.cc.u32 %5, %5, %14;\n addc.cc.u32 %6, %6, %15;\n addc.cc.u32 %7, %7, %16;\n"
            "addc.u32 %8, 0, 0;"
            : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "+r"(r[6]), "+r"(r[7]), "=&r"(carry)
            : "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]), "r"(b[7]));
        return carry;
    }
    INLINE static word ripple(word *r, word b) {
        word carry;
        asm("add.cc.u32 %0, %0, %9;\n addc.cc.u32 %1, %1, 0;\n addc.cc.u32 %2, %2, 0;\n addc.cc.u32 %3, %3, 0;\n"
            "addc.cc.u32 %4, %4, 0;\n addc.cc.u32 %5, %5, 0;\n addc.cc.u32 %6, %6, 0;\n addc.cc.u32 %7, %7, 0;\n"
            "addc.u32 %8, 0, 0;"
            : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "+r"(r[6]), "+r"(r[7]), "=&r"(carry)
            : "r"(b));
        return carry;
    }
};

template <> struct Chain<12> {
    INLINE static void mad(word *r, const word *a, word b, word &top) {
        asm(Q_PAIR("0", "1", "13", "19", "") Q_PAIR("2", "3", "14", "19", "c") Q_PAIR("4", "5", "15", "19", "c")
            Q_PAIR("6", "7", "16", "19", "c") Q_PAIR("8", "9", "17", "19", "c") Q_PAIR("10", "11", "18", "19", "c")
            "addc.u32 %12, %12, 0;"
            : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "+r"(r[6]), "+r"(r[7]), "+r"(r[8]),
              "+r"(r[9]), "+r"(r[10]), "+r"(r[11]), "+r"(top)
            : "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(a[6]), "r"(a[8]), "r"(a[10]), "r"(b));
    }
    INLINE static void mad_after(word &low, word addend, word *r, const word *a, word b, word &top) {
        asm("add.cc.u32 %13, %13, %21;\n"
            Q_PAIR("0", "1", "14", "20", "c") Q_PAIR("2", "3", "15", "20", "c") Q_PAIR("4", "5", "16", "20", "c")
            Q_PAIR("6", "7", "17", "20", "c") Q_PAIR("8", "9", "18", "20", "c") Q_PAIR("10", "11", "19", "20", "c")
            "addc.u32 %12, %12, 0;"
            : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "+r"(r[6]), "+r"(r[7]), "+r"(r[8]),
              "+r"(r[9]), "+r"(r[10]), "+r"(r[11]), "+r"(top), "+r"(low)
            : "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(a[6]), "r"(a[8]), "r"(a[10]), "r"(b), "r"(addend));
    }
    INLINE static word add(word *r, const word *b) {
        word carry;
        asm("add.cc.u32 %0, %0, %13;\n addc.cc.u32 %1, %1, %14;\n addc.cc.u32 %2, %2, %15;\n addc.cc.u32 %3, %3, %16;\n"
            "addc.cc.u32 %4, %4, %17;\n addc.cc.u32 %5, %5, %18;\n addc.cc.u32 %6, %6, %19;\n addc.cc.u32 %7, %7, %20;\n"
            "addc.cc.u32 %8, %8, %21;\n addc.cc.u32 %9, %9, %22;\n addc.cc.u32 %10, %10, %23;\n addc.cc.u32 %11, %11, %24;\n"
            "addc.u32 %12, 0, 0;"
            : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "+r"(r[6]), "+r"(r[7]), "+r"(r[8]),
              "+r"(r[9]), "+r"(r[10]), "+r"(r[11]), "=&r"(carry)
            : "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]), "r"(b[7]), "r"(b[8]), "r"(b[9]),
              "r"(b[10]), "r"(b[11]));
        return carry;
    }
    INLINE static word ripple(word *r, word b) {
        word carry;
        asm("add.cc.u32 %0, %0, %13;\n addc.cc.u32 %1, %1, 0;\n addc.cc.u32 %2, %2, 0;\n addc.cc.u32 %3, %3, 0;\n"
            "addc.cc.u32 %4, %4, 0;\n addc.cc.u32 %5, %5, 0;\n addc.cc.u32 %6, %6, 0;\n addc.cc.u32 %7, %7, 0;\n"
            "addc.cc.u32 %8, %8, 0;\n addc.cc.u32 %9, %9, 0;\n addc.cc.u32 %10, %10, 0;\n addc.cc.u32 %11, %11, 0;\n"
            "addc.u32 %12, 0, 0;"
            : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "+r"(r[6]), "+r"(r[7]), "+r"(r[8]),
              "+r"(r[9]), "+r"(r[10]), "+r"(r[11]), "=&r"(carry)
            : "r"(b));
        return carry;
    }
};

#undef Q_PAIR
