// Opcodes of Python's pickle protocols 0 to 5, with the names of Python's pickletools module.
#pragma once

#include <cstdint>

namespace tandem {

enum class Opcode : std::uint8_t {
  // Protocol 0
  MARK = '(',
  STOP = '.',
  POP = '0',
  DUP = '2',
  FLOAT = 'F',
  INT = 'I',
  LONG = 'L',
  NONE = 'N',
  PERSID = 'P',
  REDUCE = 'R',
  STRING = 'S',
  UNICODE = 'V',
  APPEND = 'a',
  BUILD = 'b',
  GLOBAL = 'c',
  DICT = 'd',
  GET = 'g',
  INST = 'i',
  LIST = 'l',
  PUT = 'p',
  SETITEM = 's',
  TUPLE = 't',

  // Protocol 1
  POP_MARK = '1',
  BINFLOAT = 'G',
  BININT = 'J',
  BININT1 = 'K',
  BININT2 = 'M',
  BINPERSID = 'Q',
  BINSTRING = 'T',
  SHORT_BINSTRING = 'U',
  BINUNICODE = 'X',
  APPENDS = 'e',
  BINGET = 'h',
  LONG_BINGET = 'j',
  OBJ = 'o',
  BINPUT = 'q',
  LONG_BINPUT = 'r',
  SETITEMS = 'u',
  EMPTY_TUPLE = ')',
  EMPTY_LIST = ']',
  EMPTY_DICT = '}',

  // Protocol 2
  PROTO = 0x80,
  NEWOBJ = 0x81,
  EXT1 = 0x82,
  EXT2 = 0x83,
  EXT4 = 0x84,
  TUPLE1 = 0x85,
  TUPLE2 = 0x86,
  TUPLE3 = 0x87,
  NEWTRUE = 0x88,
  NEWFALSE = 0x89,
  LONG1 = 0x8a,
  LONG4 = 0x8b,

  // Protocol 3
  BINBYTES = 'B',
  SHORT_BINBYTES = 'C',

  // Protocol 4
  SHORT_BINUNICODE = 0x8c,
  BINUNICODE8 = 0x8d,
  BINBYTES8 = 0x8e,
  EMPTY_SET = 0x8f,
  ADDITEMS = 0x90,
  FROZENSET = 0x91,
  NEWOBJ_EX = 0x92,
  STACK_GLOBAL = 0x93,
  MEMOIZE = 0x94,
  FRAME = 0x95,

  // Protocol 5. NEXT_BUFFER (0x97) and READONLY_BUFFER (0x98) need data from outside and are refused.
  BYTEARRAY8 = 0x96,
};

}  // namespace tandem
