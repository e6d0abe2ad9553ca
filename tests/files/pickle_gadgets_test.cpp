// Pickles that run code when Python loads them: the functions of pickle_gadgets.h, in every way in which a
// pickle can name and call them, in every container, and with the tricks that made scanners miss them. Each
// is refused by name, both by the reader of weights and by the scan of tandem inspect; nothing is executed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/files/inspect.h"
#include "tandem/files/pickle_scan.h"
#include "tandem/files/pth.h"
#include "tandem/text/table.h"
#include "tests/files/archives.h"
#include "tests/files/pickle_gadgets.h"
#include "tests/files/test_files.h"
#include "tests/paths.h"

namespace tandem {
namespace {

using namespace std::string_literals;

// ---- a small assembler of pickles ----

std::string line(std::string_view text) {
  return std::string(text) + "\n";
}
std::string unicode(std::string_view text) {
  return "\x8c" + std::string(1, static_cast<char>(text.size())) + std::string(text);
}

// "module" and "name" of "module.name".
struct Global {
  std::string module, name;
};
Global split(std::string_view full) {
  const std::size_t dot = full.rfind('.');
  return {std::string(full.substr(0, dot)), std::string(full.substr(dot + 1))};
}
std::string global(const Global& of) {
  return "c" + line(of.module) + line(of.name);
}
std::string stack_global(const Global& of) {
  return unicode(of.module) + unicode(of.name) + "\x93";
}

const std::string arguments = "S'echo pwned'\n\x85";  // one text in a tuple

// ---- the functions ----

std::vector<std::string> gadgets() {
  std::istringstream words{std::string(pickle_gadgets)};
  return {std::istream_iterator<std::string>(words), {}};
}

bool has_refused(const std::vector<PthName>& names, std::string_view name) {
  return std::ranges::any_of(names, [&](const PthName& one) { return one.name == name && !one.understood; });
}

// The file is refused by this name, by the reader of weights and by the scan.
void expect_refused(const std::string& bytes, std::string_view name, const std::string& how) {
  const std::string text = error_text([&] { parse_pth(bytes, "m.pt"); });
  EXPECT_NE(text.find(name), std::string::npos) << how << ": " << text;
  EXPECT_TRUE(has_refused(pth_names(bytes, "m.pt"), name)) << how;
}

TEST(PickleGadgets, EveryFunction_IsRefusedByName) {
  EXPECT_GE(gadgets().size(), 133u);
  for (const std::string& gadget : gadgets()) {
    const Global of = split(gadget);
    expect_refused(global(of) + arguments + "R.", gadget, "GLOBAL and REDUCE");
    expect_refused("\x80\x04" + stack_global(of) + arguments + "R.", gadget, "STACK_GLOBAL and REDUCE");
  }
}

// ---- the ways to name and call a function ----

struct Way {
  const char* name;
  std::string pickle;
  std::string refused = "os.system";
};

const Global os_system{"os", "system"};

const Way ways[] = {
    {"INST", "(S'echo pwned'\ni" + line("os") + line("system") + "."},
    {"OBJ", "(" + global(os_system) + "S'echo pwned'\no."},
    {"NEWOBJ", "\x80\x02" + global(os_system) + arguments + "\x81."},
    {"NEWOBJ_EX", "\x80\x04" + global(os_system) + arguments + "}\x92."},
    {"OnlyImported", global(os_system) + "."},
    {"ImportedAndPopped", global(os_system) + "0}."},
    {"InsideAnArgument", global({"collections", "defaultdict"}) + global(os_system) + "\x85R."},
    {"StateOfBuild", global({"collections", "OrderedDict"}) + ")R}S'f'\n" + global(os_system) + "sb."},
    {"BuildOfAFunction", global(os_system) + "}b.", "os.system"},
    {"ValueOfADict", "}S'f'\n" + global(os_system) + "s."},
    {"KeyOfADict", "}" + global(os_system) + "Ns."},
    {"ElementOfAList", "](" + global(os_system) + "e."},
    {"ElementOfAFrozenSet", "\x80\x04(" + global(os_system) + "\x91."},
    {"PersistentId", "(S'storage'\n" + global(os_system) + "S'0'\nS'cpu'\nI1\ntQ."},
    {"CallOfAPersistentId", "PS'id'\n" + arguments + "R.", "the result of a persistent id"},
    {"Extension1", "\x80\x02\x82\x07" + arguments + "R.", "copyreg.extension_7"},
    {"Extension2", "\x80\x02\x83\x07\x01" + arguments + "R.", "copyreg.extension_263"},
    {"Extension4", "\x80\x02\x84\x07\x00\x00\x01"s + arguments + "R.", "copyreg.extension_16777223"},
    {"ExtensionThatIsNotCalled", "\x80\x02\x82\x07.", "copyreg.extension_7"},
    {"MemoOfTexts",
     "S'os'\nq\x01"
     "0S'system'\nq\x02"
     "0h\x01h\x02\x93" +
         arguments + "R."},
    // memo[0] and memo[1] are set twice, by PUT and by MEMOIZE: a scanner that counts one kind only is
    // misled.
    {"MemoOfTwoKinds",
     "U\x02os\x71\x00U\x06system\x71\x01"s
     "0"
     "0" +
         unicode("torch._utils") + "\x94" + unicode("_rebuild_tensor_v2") +
         "\x94"
         "0"
         "0h\x00h\x01\x93"s +
         arguments + "R."},
    {"MemoOfTheFunction", global(os_system) + "p9\n0g9\n" + arguments + "R."},
    {"MemoizedArguments", "(S'echo pwned'\ntp1\n0" + global(os_system) + "g1\nR."},
    {"DupOfTheFunction", global(os_system) + "2" + arguments + "R0."},
    {"DottedName", "\x80\x04" + stack_global({"posixpath", "os.system"}) + arguments + "R.",
     "posixpath.os.system"},
    {"TextOfProtocol0", "Vos\nVsystem\n\x93" + arguments + "R."},
    {"TextOfProtocol1",
     "X\x02\x00\x00\x00os"s
     "X\x06\x00\x00\x00system\x93"s +
         arguments + "R."},
    {"LongText",
     "\x8d\x02\x00\x00\x00\x00\x00\x00\x00os"s
     "\x8d\x06\x00\x00\x00\x00\x00\x00\x00system\x93"s +
         arguments + "R."},
    {"EscapedText", "V\\u006fs\nVs\\u0079stem\n\x93" + arguments + "R."},
    {"ResultOfGetattr",
     global({"builtins", "getattr"}) + global({"os", "path"}) + "S'system'\n\x86R" + arguments + "R.",
     "the result of builtins.getattr"},
    {"MethodOfAResult", global({"evil", "List"}) + ")R(NNe.", "evil.List.extend"},
    {"SetItemOfAResult", global({"evil", "Dict"}) + ")RNNs.", "evil.Dict.__setitem__"},
    {"AfterAFrame",
     "\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7f" + stack_global(os_system) + arguments + "R."},
    {"InTheSecondPickle", "K\x01." + global(os_system) + arguments + "R."},
    {"SpacesInTheName", "cos \nsystem\n" + arguments + "R.", "os .system"},
};

TEST(PickleGadgets, EveryWayToCall_IsRefusedByName) {
  for (const Way& way : ways) {
    SCOPED_TRACE(way.name);
    EXPECT_TRUE(has_refused(pth_names(way.pickle, "m.pt"), way.refused) ||
                has_refused(pth_names(way.pickle, "m.pt"), way.refused + ".__setstate__"));
    EXPECT_FALSE(error_text([&] { parse_pth(way.pickle, "m.pt"); }).empty());
  }
}

// ---- damage: Python runs what stands before it ----

TEST(PickleGadgets, DamagedPickles_AreRefusedByName) {
  const std::string call = global(os_system) + arguments + "R", later = stack_global({"nt", "popen"});
  expect_refused(call, "os.system", "truncated after REDUCE");
  expect_refused(call + "X\xFF\xFF\xFF\x7F", "os.system", "truncated in an argument");
  expect_refused(call + "\xFF", "os.system", "an unknown opcode after the call");
  expect_refused(call + "t.", "os.system", "an opcode that fails after the call");
  expect_refused(call + "0.", "os.system", "STOP with an empty stack");
  expect_refused(call + ".\xFF\xFE", "os.system", "unknown opcodes after STOP");
  expect_refused(call + "h\x63.", "os.system", "an unknown memo key after the call");
  expect_refused(call + "\x80\x7F.", "os.system", "an unknown protocol after the call");
  // What follows damage is named too, although Python would not get there.
  EXPECT_TRUE(has_refused(pth_names("\x80\x04\xFF" + call + ".", "m"), "os.system"));
  EXPECT_TRUE(has_refused(pth_names("N.\xFF" + call + later + ".", "m"), "os.system"));
  EXPECT_TRUE(has_refused(pth_names("\x80\x04\xFF" + later, "m"), "nt.popen"));
  EXPECT_TRUE(has_refused(pth_names("(\xFF(S'x'\ni" + line("os") + line("system"), "m"), "os.system"));
}

// ---- containers ----

const std::string evil = global(os_system) + arguments + "R.";
const std::string weights = "}.";

void expect_found(const std::string& bytes, const std::string& how) {
  EXPECT_TRUE(has_refused(pth_names(bytes, "m.pt"), "os.system")) << how;
}

TEST(PickleGadgets, EveryMemberOfAnArchive_IsSearched) {
  for (const std::string name : {"a/data.pkl", "a/data.pickle", "data.pkl", "a/other.pkl", "a/model.bin",
                                 "model.ckpt", "a/.data/hidden", "a/data/0.pkl", "a/constants.pkl",
                                 "a/extra/code", "archive/version", "x.npy", "a/data/tensors"})
    for (const bool deflated : {false, true}) {
      expect_found(zip({{.name = "b/data.pkl", .contents = weights},
                        {.name = name, .contents = evil, .deflated = deflated}}),
                   name);
      expect_found(zip({{.name = name, .contents = "\x80\x02" + evil, .deflated = deflated}}), name);
    }
  // A storage holds numbers, which torch.load does not unpickle.
  EXPECT_TRUE(
      pth_names(zip({{.name = "a/data.pkl", .contents = weights}, {.name = "a/data/7", .contents = evil}}),
                "m")
          .empty());
}

TEST(PickleGadgets, NestedContainers_AreSearched) {
  const std::string inner = zip({{.name = "a/data.pkl", .contents = evil}});
  expect_found(zip({{.name = "b/inner.pth", .contents = inner}}), "zip in zip");
  expect_found(zip({{.name = "b/x", .contents = zip({{.name = "c", .contents = inner}}), .deflated = true}}),
               "zip in zip in zip");
  expect_found(gzip(evil), "gzip");
  expect_found(gzip(gzip("\x80\x03" + evil)), "gzip in gzip");
  expect_found(zip({{.name = "m.gz", .contents = gzip(evil)}}), "gzip in zip");
  expect_found(tar_entry("pickle", evil) + tar_end(), "the tar of torch.load before 0.2");
  expect_found(tar_entry("x", "text") + tar_entry("storages", inner) + tar_end(), "zip in tar");
  const std::string header = "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n";
  expect_found("\x93NUMPY\x01\x00"s + little_endian(header.size(), 2) + header + evil, "NumPy objects");
  expect_found("\x93NUMPY\x02\x00"s + little_endian(header.size(), 4) + header + evil,
               "NumPy objects, version 2");
  expect_found(zip({{.name = "x.npy",
                     .contents = "\x93NUMPY\x01\x00"s + little_endian(header.size(), 2) + header + evil}}),
               "npz");
  const std::string magic =
      "\x80\x02\x8a\x0al\xfc\x9c"
      "F\xf9 j\xa8P\x19.";
  for (int i = 0; i < 5; ++i) {  // any of the pickles of the legacy format
    std::string legacy;
    for (int j = 0; j < 5; ++j)
      legacy += i == j   ? (j == 0 ? magic.substr(0, 14) + global(os_system) + "0." : evil)
                : j == 0 ? magic
                : j == 1 ? "M\xe9\x03."
                         : "}.";
    expect_found(legacy, fmt::format("pickle {} of the legacy format", i));
  }
}

// A scanner that gives up on such a file calls it safe; programs that load it do not look as closely.
TEST(PickleGadgets, ArchivesThatScannersMisread_AreRefused) {
  const auto check_archive = [](const std::string& archive, const std::string& how) {
    expect_found(archive, how);
    EXPECT_FALSE(error_text([&] { parse_pth(archive, "m.pt"); }).empty()) << how;
  };
  check_archive(zip({{.name = "a/data.pkl", .contents = evil, .crc = 7}}), "wrong CRC");
  check_archive(zip({{.name = "a/data.pkl", .contents = evil, .deflated = true, .crc = 7}}),
                "wrong CRC, deflated");
  for (const std::uint16_t flags : std::initializer_list<std::uint16_t>{0x1, 0x20, 0x40, 0x2000})
    check_archive(zip({{.name = "a/data.pkl", .contents = evil, .flags = flags}}), "flags");
  check_archive(zip({{.name = "a/data.pkl", .contents = evil, .method = 99}}), "unknown method");
  check_archive(zip({{.name = "a/data.pkl", .contents = evil, .size = 1}}), "wrong size");
  check_archive(zip({{.name = "a/data.pkl", .contents = evil, .offset = 9999}}), "wrong offset");
  check_archive(zip({{.name = "a/data.pkl", .contents = weights}, {.name = "a/data.pkl", .contents = evil}}),
                "the same name twice");
  std::string other_name = zip({{.name = "a/data.pkl", .contents = evil}});
  other_name.replace(other_name.find("a/data.pkl"), 10, "b/data.txt");
  check_archive(other_name, "another name in the local header");
  std::string cut = zip({{.name = "a/data.pkl", .contents = evil}});
  check_archive(cut.substr(0, cut.size() - 30), "no directory");
  check_archive(zip({{.name = "a/data.pkl", .contents = evil}}) + "PK\x05\x06" + std::string(30, 'x'),
                "bytes after it");
}

// The opcodes before the payload are texts with the JSON of a safetensors header in them; the payload is the
// data of a tensor.
TEST(PickleGadgets, SafetensorsThatIsAlsoAPickle_IsSuspicious) {
  const std::size_t text_size = 64, header_size = 'X' + (text_size << 8);  // as safetensors reads it
  std::string bytes = "X" + little_endian(text_size, 4) + "\0\0\0"s + R"({"__metadata__":{"t":")";
  bytes.resize(5 + text_size, 'a');
  std::string end =
      fmt::format(R"("}},"x":{{"dtype":"U8","shape":[{0}],"data_offsets":[0,{0}]}}}})", evil.size());
  end.resize(126, ' ');
  const std::size_t left = 8 + header_size - bytes.size() - 128;
  bytes += std::string(left % 129, 'N');
  for (std::size_t i = 0; i < left / 129; ++i) bytes += "U~" + std::string(126, 'a') + "0";
  bytes += "U~" + end + evil;
  EXPECT_EQ(parse_safetensors(bytes, "m").tensors.size(), 1u);
  const TempFolder folder;
  put_bytes(folder / "m", bytes);
  const WeightFacts facts = inspect_weights(folder / "m");
  EXPECT_EQ(facts.format, "safetensors");
  EXPECT_EQ(facts.suspicious(), std::vector<std::string>{"os.system"});
  EXPECT_NE(facts.problem.find("expected weights only, got a file that also names os.system"),
            std::string::npos);
}

// Flipped, cut and joined files: the search ends without an error, whatever they are.
TEST(PickleGadgets, DamagedFiles_AreSearchedWithoutAnError) {
  std::vector<std::string> originals{
      gzip(evil), tar_entry("x", evil) + tar_end(),
      zip({{.name = "b/x.pth", .contents = zip({{.name = "a", .contents = evil}})}})};
  const std::filesystem::path golden = std::filesystem::path(source_folder) / "tests/golden/pth";
  for (const auto& entry : std::filesystem::directory_iterator(golden))
    originals.push_back(get_bytes(entry.path()));
  std::ranges::sort(originals);
  std::mt19937 random(8);  // NOLINT: the same damage every time
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = originals[random() % originals.size()];
    for (std::uint64_t flips = random() % 4; flips-- > 0;)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    if (random() % 4 == 0) bytes += originals[random() % originals.size()];
    EXPECT_NO_THROW(scan_pickles(bytes, "m", random() % 2 == 0));
  }
}

TEST(PickleGadgets, AllowedNames_AreNotSuspicious) {
  const std::string dict = global({"collections", "OrderedDict"}) + ")R.";
  EXPECT_TRUE(std::ranges::all_of(pth_names(dict, "m"), &PthName::understood));
  const std::string dtype = "}S'dtype'\n" + global({"torch", "float32"}) + "s.";
  EXPECT_TRUE(std::ranges::all_of(pth_names(dtype, "m"), &PthName::understood));
  EXPECT_TRUE(scan_pickles(dict, "m").problem.empty());
}

TEST(PickleGadgets, Inspect_SaysSuspicious) {
  const TempFolder folder;
  const auto inspected = [&](const std::string& bytes) {
    put_bytes(folder / "m.bin", bytes);
    return inspect_weights(folder / "m.bin");
  };
  const WeightFacts facts = inspected(global({"collections", "defaultdict"}) + global(os_system) + "\x85R.");
  EXPECT_EQ(facts.suspicious(), std::vector<std::string>{"os.system"});
  EXPECT_NE(facts.problem.find("got a pickle that imports os.system; nothing was executed"),
            std::string::npos)
      << facts.problem;
  const std::string text = to_text(facts, {});
  EXPECT_NE(text.find("SUSPICIOUS: loading this file in Python could run os.system."), std::string::npos)
      << text;
  EXPECT_NE(to_json_text(facts).find("\"suspicious\": [\n    \"os.system\"\n  ]"), std::string::npos)
      << to_json_text(facts);
  // Weights are fine, another member is not.
  std::string pth = get_bytes(std::filesystem::path(source_folder) / "tests/golden/pth/checkpoint.pth");
  EXPECT_TRUE(inspected(pth).suspicious().empty());
  EXPECT_TRUE(inspected(pth).problem.empty());
}

}  // namespace
}  // namespace tandem
