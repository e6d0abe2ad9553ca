"""Stored cases for TOML 1.0: documents with the values that Python's tomllib reads from them, and documents it refuses.

Left out, because tomllib is laxer or stricter than TOML 1.0 or leaves it open: a byte order mark, leap seconds, the year 0,
numbers of more than 64 bits. tests/files/toml_test.cpp has them.

    python3 tests/golden/make_toml.py
"""
import datetime
import json
import math
import os
import struct
import tomllib

VALID = {
    "empty": "",
    "blank lines": "\n \t\n\n",
    "comment only": "# nothing # else",
    "comment with a tab and ü": "# a\tb ü 😀\nx = 1 # end\n",
    "no line end at the end": "x = 1",
    "Windows line ends": "a = 1\r\n\r\n[b] # c\r\nc = [1,\r\n2]\r\n",
    "spaces around everything": "\t a \t=\t 1 \t\n [ b . \"c\" ] \n  d  =  [ 1 , 2 ]  \n",
    "bare keys": "a-b_C9 = 1\n1234 = 2\n- = 3\n_ = 4\ntrue = 5\n1e3 = 6\ninf = 7\n",
    "quoted keys": "\"a b\" = 1\n'c.d' = 2\n\"\" = 3\n\"\\u00fc\\n\" = 4\n\"ü\" = 5\n'\"' = 6\n",
    "dotted keys": "a.b.c = 1\na.b.d = 2\na . e = 3\n\"f g\".'h.i'.j = 4\n3.14 = 5\n",
    "dotted keys out of order": "apple.color = 1\norange.color = 2\napple.skin = 3\norange.skin = 4\n",
    "dotted keys in a section": "[fruit]\napple.color = 'red'\napple.taste.sweet = true\n[fruit.apple.texture]\nsmooth = true\n",
    "keys that headers would repeat": "[a]\nb = 1\n[\"a.b\"]\nc = 2\n",
    "tables": "[a]\nx = 1\n[a.b]\nx = 2\n[c.d.e]\nx = 3\n[f]\n",
    "super-table after its table": "[a.b.c]\nx = 1\n[a]\ny = 2\n[a.b]\nz = 3\n",
    "tables out of order": "[a.b]\n[c]\n[a.d]\n[c.e]\n",
    "dotted key adds to an implied table": "[a.b.c]\nx = 1\n[a]\nb.y = 2\n",
    "dotted key of a later section": "[a]\nb.c = 1\n[a.d]\nb.c = 2\n[b]\nc.d = 3\n",
    "table after values": "x = 1\ny.z = 2\n[a]\nx = 3\n[y.a]\nx = 4\n",
    "array of tables": "[[a]]\nx = 1\n[[a]]\n[[a]]\nx = 2\ny = 3\n",
    "nested arrays of tables": "[[a]]\nx = 1\n[a.b]\ny = 2\n[[a.c]]\nz = 3\n[[a.c]]\nz = 4\n[[a]]\nx = 5\n[a.b]\ny = 6\n[[a.c]]\nz = 7\n",
    "array of tables in a table": "[a]\nx = 1\n[[a.b]]\ny = 2\n[[a.b.c]]\nz = 3\n[a.b.d]\nw = 4\n",
    "array of tables before its super-table": "[[a.b]]\nx = 1\n[a]\ny = 2\n",
    "spaces in headers": "[[ a ]]\n[[\ta\t]]\n[ a . b ]\nx = 1\n",
    "table between tables of an array": "[[a]]\nx = 1\n[b]\nx = 2\n[[a]]\nx = 3\n",
    "quoted headers": "['a']\nx = 1\n[b.\"c d\".'']\nx = 2\n[[\"e.f\"]]\nx = 3\n",
    "inline tables": "a = {}\nb = { }\nc = {x = 1}\nd = { x = 1 , y.z = 'b' , y.w = { } }\ne = {\"k k\"=[1,2],'l'={m={n=1}}}\n",
    "line ends inside values of an inline table": "a = {x = [\n1, # one\n2\n], y = '''p\nq'''}\nb = 1\n",
    "inline tables in lists": "a = [{x = 1}, {}, {x = 2, y = [{z = 3}]},]\n",
    "inline table, then another section": "a = {b = 1}\n[c]\na.b = 2\n",
    "lists": "a = []\nb = [ ]\nc = [1,2]\nd = [ 1, 2, ]\ne = [\n\n1 # one\n, # comma\n2,\n# end\n]\n",
    "nested and mixed lists": "a = [[1, 2], ['a', \"b\"], [], [[[1.5]]], true, {x = 1}, 1979-05-27, '''c''']\n",
    "list with brackets in strings": "a = ['[', \"]\", '#', \",\"] # ]\n",
    "booleans": "a = true\nb = false\nc = [true,false]\n",
    "integers": "a = 0\nb = +0\nc = -0\nd = 42\ne = +99\nf = -17\ng = 1_000\nh = 1_2_3\n"
                "i = 9223372036854775807\nj = -9223372036854775808\n",
    "integers of other bases": "a = 0xDEADBEEF\nb = 0xdead_beef\nc = 0o01234567\nd = 0o755\ne = 0b1101_0110\nf = 0x0\ng = 0b00\n"
                              "h = 0x7FFF_FFFF_FFFF_FFFF\ni = 0xe\nj = 0x1e3\n",
    "floats": "a = +1.0\nb = 3.1415\nc = -0.01\nd = 5e+22\ne = 1e06\nf = -2E-2\ng = 6.626e-34\nh = 224_617.445_991_228\ni = 0.0\nj = -0.0\n"
              "k = 0e0\nl = 1_0e1_0\nm = 1e-00\nn = 0.1\no = 1.7976931348623157e308\np = 5e-324\nq = 9007199254740993.0\n",
    "infinities and NaN": "a = inf\nb = +inf\nc = -inf\nd = nan\ne = +nan\nf = -nan\ng = [inf,-inf]\n",
    "dates": "a = 1979-05-27T07:32:00Z\nb = 1979-05-27T00:32:00-07:00\nc = 1979-05-27T00:32:00.999999+05:30\nd = 1979-05-27 07:32:00z\n"
             "e = 1979-05-27t07:32:00\nf = 1979-05-27 00:32:00.123456\ng = 1979-05-27\nh = 07:32:00\ni = 23:59:59.500000 # c\n"
             "j = [1979-05-27, 1979-05-28 01:02:03 , 04:05:06]\nk = {x = 1979-05-27 07:32:00}\nl = 1979-05-27 # 07:32:00\n",
    "dates of every month": "a = [2023-01-31, 2023-02-28, 2024-02-29, 2000-02-29, 2023-03-31, 2023-04-30, 2023-06-30, 2023-09-30, 2023-11-30, "
                            "2023-12-31, 0001-01-01, 9999-12-31]\n",
    "strings": "a = \"\"\nb = ''\nc = \"x # y\"\nd = 'C:\\new \"x\"'\ne = \"'\"\nf = \"\t\"\ng = 'ü 😀'\n",
    "escapes": r'a = "\b\t\n\f\r\"\\\u00fc\u00DF\U0001F600\u0000\u007f\uFFFD\ud7ff\ue000"' + "\n" + r"b = '\u00fc\q'" + "\n",
    "replacement character": "a = \"\ufffd\"\n",
    "multi-line strings": 'a = """"""\nb = \'\'\'\'\'\'\nc = """\nx\n y\n"""\nd = \'\'\'\n\\x\ny\'\'\'\ne = """one line"""\nf = """\n\nx"""\n',
    "multi-line strings with Windows line ends": 'a = """\r\nx\r\ny"""\r\nb = \'\'\'x\r\ny\r\n\'\'\'\r\n',
    "quotes in multi-line strings": 'a = """"x""""\nb = """""y"""""\nc = """x""y"z"""\nd = \'\'\'\'x\'\'\'\'\ne = \'\'\'\'\'y\'\'\'\'\'\nf = """\\"""x"""\n'
                                    'g = """a\\""""\nh = """\'\'\'"""\ni = \'\'\'"""\'\'\'\n',
    "backslash at a line's end": 'a = """x \\\n   y"""\nb = """\\\n\n \t\n  x\\  \n  """\nc = """x\\\r\n  \r\n y"""\nd = """\\\\\ny"""\ne = """x\\\n"""\n',
    "backslash in literal strings": "a = '''x\\\n y'''\nb = 'x\\'\n",
    "comment like strings": "a = '#' # '\n# \"\"\"\nb = 1\n",
    "80 levels of lists": "a = " + "[" * 80 + "]" * 80 + "\n",
    "60 levels of tables": "[" + ".".join(["a"] * 60) + "]\nx = 1\n",
    "a run": "# perceptron\ndata = \"mnist\"\nlayers = [\n  784,\n  200, # hidden\n  10,\n]\nlr = 1e-3\nnesterov = true\n",
}

INVALID = {
    "key without value": ["a", "a =", "a = # c", "a =\n1", "a = \n", "a\n= 1", "= 1", " = ", "a b = 1", "a 1", "a : 1", "a == 1"],
    "line end missing": ["a = 1 b = 2", "a = 1 2", "[a] b = 1", "[a] [b]", "a = 'x' 'y'", "a = [1] 2", "a = {} 1", "a = \"x\"y", "a = 1, b = 2"],
    "key": ["a..b = 1", ".a = 1", "a. = 1", "a.'b = 1", "ü = 1", "a+b = 1", "\"a = 1", "'a\nb' = 1", "\"\"\"a\"\"\" = 1", "'''a''' = 1",
            "a\\nb = 1", "\"\\q\" = 1", "a.b", "a!= 1", "[a] = 1", "{a = 1}", "\"a\"b = 1", "a'b' = 1"],
    "key twice": ["a = 1\na = 2", "a = 1\n'a' = 2", "a.b = 1\na.b = 2", "a = 1\na.b = 2", "a.b = 1\na = 2", "a.b.c = 1\na.b = 2",
                  "[a]\nb = 1\nb = 2", "a = {x = 1, x = 2}", "a = {x.y = 1, x = 2}", "a = {x = 1, x.y = 2}", "a = []\na = []",
                  "\"\" = 1\n'' = 2", "a = [1]\na.b = 2"],
    "header": ["[]", "[ ]", "[a", "[a]]", "[[a]", "[[a] ]", "[ [a]]", "[[]]", "[a.]", "[.a]", "[a..b]", "[a b]", "[a\n]", "[\na]", "[a]x",
               "[a #]\n", "[[a]] x", "['a]", "[\"\"\"a\"\"\"]", "[a.'''b''']", "[ü]", "[[a]\n]"],
    "table twice": ["[a]\n[a]", "[a]\n['a']", "[a.b]\n[a]\n[a]", "[a.b]\n[a.b]", "a = 1\n[a]", "a = 1\n[a.b]", "[a]\nb = 1\n[a.b]",
                    "[a]\nb = 1\n[a.b.c]", "[a]\nb.c = 1\n[a.b]", "[a]\nb.c.d = 1\n[a.b.c]", "a.b = 1\n[a]", "[a.b]\n[a]\nb = 1",
                    "[a.b]\nx = 1\n[a]\nb.y = 2", "[a.b.c]\nx = 1\n[a]\nb.c.y = 2", "[a.b.c.d]\nx = 1\n[a]\nb.c.d.e.y = 2",
                    "[a.b.c]\n[a]\nb.y = 1\n[a.b]"],
    "array of tables": ["[a]\n[[a]]", "[[a]]\n[a]", "a = []\n[[a]]", "a = [{}]\n[[a]]", "a = [{}]\n[a.b]", "[a.b]\n[[a]]", "a = 1\n[[a]]",
                        "a.b = 1\n[[a]]", "[[a]]\nb = 1\n[[a.b]]", "[[a]]\n[a.b]\n[a.b]", "[[a]]\n[a.b]\n[[a.b]]", "[[a]]\n[[a.b]]\n[a.b]",
                        "[[a.b]]\n[a]\nb.c = 1", "[[a.b]]\n[a]\nb = 1", "[a]\nb = [{}]\n[[a.b]]"],
    "inline table": ["a = {", "a = {x}", "a = {x = }", "a = {x = 1", "a = {x = 1,}", "a = {,}", "a = {, x = 1}", "a = {x = 1 y = 2}",
                     "a = {x = 1,, y = 2}", "a = {x = 1\n}", "a = {\nx = 1}", "a = {x = 1, # c\ny = 2}", "a = {x = 1 # c }", "a = {[b] = 1}",
                     "a = {}\na.b = 1", "a = {b = 1}\n[a]", "a = {b = 1}\n[a.c]", "a = {b = {}}\na.b.c = 1", "a = {b = {}}\n[a.b.c]",
                     "a = {b.c = 1}\na.b.d = 2", "a = {b = {c = 1}, b.d = 2}", "[x]\na = {}\n[x.a.b]", "a = {}}", "a = {1}", "a = {x = 1]"],
    "list": ["a = [", "a = [1", "a = [1,", "a = [,]", "a = [1,,2]", "a = [1 2]", "a = [1}", "a = ]", "a = [1]]", "a = [[1]", "a = [1\n2]",
             "a = [x]", "a = [b = 1]", "a = [1, # ]", "a = [1;2]"],
    "word": ["a = mlp", "a = True", "a = FALSE", "a = truer", "a = tru", "a = null", "a = Inf", "a = NaN", "a = infinity", "a = ++1",
             "a = *", "a = -", "a = +", "a = -true", "a = .", "a = a.b", "a = 1=2", "a = $x"],
    "integer": ["a = 01", "a = -01", "a = +01", "a = 00", "a = 0_0", "a = 1__0", "a = _1", "a = 1_", "a = --1", "a = +-1", "a = 0x", "a = 0o",
                "a = 0b", "a = 0X1", "a = 0O1", "a = 0B1", "a = 0x_1", "a = 0x1_", "a = 0x1__2", "a = -0x1", "a = +0b1", "a = 0xg", "a = 0o8",
                "a = 0b2", "a = 0x1.5", "a = 1x", "a = 1a", "a = 0x-1", "a = 1 000", "a = 0_1"],
    "float": ["a = 1.", "a = .5", "a = 1.e3", "a = -.5", "a = 1e", "a = 1e+", "a = 1e1.5", "a = 1.2.3", "a = 01.5", "a = 1_.5", "a = 1._5",
              "a = 1.5_", "a = 1.5e_1", "a = 1e1_", "a = 1e--1", "a = 0x1p3", "a = 1.5f", "a = 00.5", "a = +nanx", "a = in", "a = 1,5", "a = ++inf",
              "a = 1__0.5", "a = e5", "a = 1ee5", "a = 00e1", "a = 1e_5"],
    "date": ["a = 2023-13-01", "a = 2023-00-01", "a = 2023-01-32", "a = 2023-01-00", "a = 2023-02-29", "a = 1900-02-29", "a = 2023-04-31",
             "a = 23-01-01", "a = 2023-1-01", "a = 2023-01-1", "a = 2023/01/01", "a = 2023-01", "a = 2023-01-01T", "a = 2023-01-01T10",
             "a = 2023-01-01T10:00", "a = 2023-01-01T24:00:00", "a = 2023-01-01T10:60:00", "a = 2023-01-01T10:00:61", "a = 2023-01-01T1:00:00",
             "a = 2023-01-01T10:00:00.", "a = 2023-01-01T10:00:00.Z", "a = 2023-01-01T10:00:00+25:00", "a = 2023-01-01T10:00:00+01:60",
             "a = 2023-01-01T10:00:00+1:00", "a = 2023-01-01T10:00:00+0100", "a = 2023-01-01T10:00:00Z+01:00", "a = 2023-01-01  10:00:00",
             "a = 2023-01-01x10:00:00", "a = 2023-01-01_10:00:00", "a = 10:00", "a = 10:00:00Z", "a = 24:00:00", "a = 1:00:00", "a = 10:0:00",
             "a = 10-00-00", "a = 2023-01-01 10", "a = +2023-01-01", "a = 20230-01-01", "a = 2023-01-01Z", "a = 2023-01-01T10:00:00 Z",
             "a = 1_000-01-01"],
    "string": ["a = \"x", "a = 'x", "a = \"x\ny\"", "a = 'x\ny'", "a = \"x\\", "a = \"\\", "a = '\\''", "a = \"\\q\"", "a = \"\\x41\"",
               "a = \"\\e\"", "a = \"\\ \"", "a = \"\\/\"", "a = \"\\'\"", "a = \"\\u12\"", "a = \"\\u12g4\"", "a = \"\\U0001F60\"",
               "a = \"\\ud800\"", "a = \"\\udfff\"", "a = \"\\U00110000\"", "a = \"\\UFFFFFFFF\"", "a = \"\\u+123\"", "a = \"\\u 123\"",
               "a = \"\\\n\"", "a = \"x\" y", "a = \"\\u00\nfc\"", "a = \"\\B\"", "a = \"\\0\""],
    "multi-line string": ['a = """', 'a = """x', 'a = """x"', 'a = """x""', "a = '''", "a = '''x''", 'a = """x\\"""', 'a = """""""""', 'a = """x""""""',
                          "a = '''x''''''", 'a = """\\q"""', 'a = """x\\ y"""', 'a = """\\ud800"""', 'a = """x""" y', "a = '''x\"\"\"",
                          'a = """x\\  ', 'a = """\\'],
    "control character": ["a = \"\x00\"", "a = \"\x01\"", "a = '\x1f'", "a = \"\x7f\"", "a = \"\"\"\x08\"\"\"", "a = '''\x0b'''", "# \x02",
                          "# \x7f\n", "a = 1 # \x00", "\x00", "a\x01 = 1", "a = 1\x0c", "a = \x1b", "[a\x01]", "a = \"\x0c\"",
                          "'\x07' = 1"],
    "carriage return": ["a = 1\rb = 2", "\r", "a = 1\r", "# c\r", "a = \"x\ry\"", "a = 'x\r'", "a = \"\"\"x\ry\"\"\"", "a = '''\r'''", "a = 1\r\r\n",
                        "[a]\rb = 1", "a = [\r1]", "# c\rd\n"],
}

INVALID_BYTES = [b"\xff", b"a = \"\xff\"", b"# \x80\n", b"a = '\xc3'", b"a = \"\xc0\x80\"", b"a = \"\xed\xa0\x80\"", b"a = \"\xf4\x90\x80\x80\"",
                 b"a = \"\xe2\x82\"", b"a = '''\xfe'''", b"\xc3\xbc\xff = 1", b"a = 1\nb = \"\xf8\x88\x80\x80\x80\"", b"\xfe\xff\x00a"]


def date_text(value):
    if isinstance(value, datetime.datetime) and value.utcoffset() == datetime.timedelta(0):
        return value.replace(tzinfo=None).isoformat() + "Z"
    return value.isoformat()


def encoded(value):
    """Types that JSON does not tell apart become objects; floats are the eight bytes of their bits."""
    if isinstance(value, dict):
        return {"table": {key: encoded(item) for key, item in value.items()}}
    if isinstance(value, list):
        return [encoded(item) for item in value]
    if isinstance(value, float):
        return {"float": "nan" if math.isnan(value) else struct.pack(">d", value).hex()}
    if isinstance(value, (datetime.date, datetime.time)):
        return {"date": date_text(value)}
    return value


def is_refused(data):
    try:
        tomllib.loads(data.decode())
    except ValueError:  # TOMLDecodeError, UnicodeDecodeError
        return True
    return False


cases = {"valid": [], "invalid": []}
for name, text in VALID.items():
    cases["valid"].append({"name": name, "text": text, "expected": encoded(tomllib.loads(text))})
for name, texts in INVALID.items():
    for text in texts:
        assert is_refused(text.encode()), f"tomllib accepts {text!r}"
        cases["invalid"].append({"name": name, "text": text})
for data in INVALID_BYTES:
    assert is_refused(data)
    cases["invalid"].append({"name": "not UTF-8", "hex": data.hex()})
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "toml.json"), "w") as file:
    lines = [f'"{kind}": [\n' + ",\n".join(json.dumps(case) for case in cases[kind]) + "\n]" for kind in cases]
    file.write("{" + ",\n".join(lines) + "}\n")
print(f"toml: {len(cases['valid'])} valid and {len(cases['invalid'])} invalid documents")
