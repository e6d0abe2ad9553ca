// Time and memory of every parser grow at most linearly: the work for inputs of n, 2n and 4n parts is counted
// (work.h), no clock is read. The inputs are those that would be slow with the wrong algorithm.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tandem/augment/transform.h"
#include "tandem/core/error.h"
#include "tandem/files/gzip.h"
#include "tandem/files/idx.h"
#include "tandem/files/npz.h"
#include "tandem/files/onnx/onnx_reader.h"
#include "tandem/files/onnx/protobuf.h"
#include "tandem/files/packed_set.h"
#include "tandem/files/pth.h"
#include "tandem/files/safetensors.h"
#include "tandem/files/tar.h"
#include "tandem/files/toml.h"
#include "tandem/files/unpickle.h"
#include "tandem/files/zip.h"
#include "tandem/image/decode.h"
#include "tandem/image/exif.h"
#include "tandem/image/heif_references.h"
#include "tandem/serve/http_parser.h"
#include "tests/complexity/work.h"
#include "tests/files/archives.h"
#include "tests/files/packed_sets.h"

namespace tandem {
namespace {

using namespace std::string_literals;

using Input = std::function<std::string(int parts)>;
using Parse = std::function<void(const std::string& bytes)>;

struct Case {
  const char* name;
  Input input;
  Parse parse;
  int parts = 2000;
};

// "part(0)part(1)…"
Input repeated(std::function<std::string(int)> part) {
  return [part](int parts) {
    std::string text;
    for (int i = 0; i < parts; ++i) text += part(i);
    return text;
  };
}
Input repeated(const std::string& part) {
  return repeated([part](int) { return part; });
}
Input between(const std::string& begin, const Input& middle, const std::string& end) {
  return [=](int parts) { return begin + middle(parts) + end; };
}

const auto numbered = [](const char* format) {
  return repeated([format](int i) { return fmt::format(fmt::runtime(format), i); });
};

// ---- weight files ----

std::string safetensors(const std::string& header) {
  return little_endian(header.size(), 8) + header;
}

std::string tensor_entry(const std::string& name, int i) {
  return fmt::format(R"({}"{}{}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})", i == 0 ? "" : ",", name,
                     i);
}

Input safetensors_of(const std::string& begin, std::function<std::string(int)> part, const std::string& end) {
  return [=](int parts) { return safetensors(between(begin, repeated(part), end)(parts)); };
}

void read_as_safetensors(const std::string& bytes) {
  parse_safetensors(bytes, "m");
}

const Case safetensors_cases[] = {
    {"Tensors",
     safetensors_of(
         "{", [](int i) { return tensor_entry("layer", i); }, "}"),
     read_as_safetensors},
    {"LongNames",
     safetensors_of(
         "{", [](int i) { return tensor_entry(std::string(200, 'n'), i); }, "}"),
     read_as_safetensors},
    {"Metadata",
     safetensors_of(R"({"__metadata__":{)",
                    [](int i) { return fmt::format(R"({}"key{}":"value")", i == 0 ? "" : ",", i); }, "}}"),
     read_as_safetensors},
    {"OneText", safetensors_of(R"({"__metadata__":{"k":")", [](int) { return "text \\n"s; }, R"("}})"),
     read_as_safetensors},
    {"UnknownFields",
     safetensors_of(R"({"x":{)", [](int i) { return fmt::format(R"("field{}":[1,"a",null],)", i); },
                    R"("dtype":"U8","shape":[0],"data_offsets":[0,0]}})"),
     read_as_safetensors},
    {"Written",
     safetensors_of(
         "{", [](int i) { return tensor_entry("layer", i); }, "}"),
     [](const std::string& bytes) { to_safetensors(parse_safetensors(bytes, "m")); }},
};

void read_as_pickle(const std::string& bytes) {
  parse_pickle(bytes, "p");
}

// Memo keys that fall into one bucket of a hash table with this many entries.
std::string colliding_keys(int parts) {
  std::unordered_map<std::uint64_t, int> table;
  for (int i = 0; i < parts; ++i) table.emplace(static_cast<std::uint64_t>(i), i);
  std::string text = "N";
  for (int i = 0; i < parts; ++i)
    text += fmt::format("p{}\n", static_cast<std::uint64_t>(i) * table.bucket_count());
  return text + ".";
}

// Tensors over one storage each.
std::string state_dict(int tensors) {
  std::string pickle = "}";
  for (int i = 0; i < tensors; ++i)
    pickle += fmt::format(
        "S'layer{0}'\nctorch._utils\n_rebuild_tensor_v2\n((S'storage'\nctorch\nFloatStorage\n"
        "S'{0}'\nS'cpu'\nI1\ntQI0\n(I1\nt(I1\ntI00\n}}tRs",
        i);
  return pickle + ".";
}

std::string zipped_state_dict(int tensors) {
  std::vector<ZippedFile> files{{.name = "a/data.pkl", .contents = state_dict(tensors)}};
  for (int i = 0; i < tensors; ++i)
    files.push_back({.name = fmt::format("a/data/{}", i), .contents = "1234"});
  return zip(files);
}

std::string legacy_state_dict(int tensors) {
  std::string bytes = "L119547037146038801333356L\n.I1001\n.}.";
  bytes += state_dict(tensors) + "(";
  for (int i = 0; i < tensors; ++i) bytes += fmt::format("S'{}'\n", i);
  bytes += "l.";
  for (int i = 0; i < tensors; ++i) bytes += little_endian(1, 8) + "1234";
  return bytes;
}

Input zip_of(std::function<ZippedFile(int)> file) {
  return [=](int parts) {
    std::vector<ZippedFile> files;
    for (int i = 0; i < parts; ++i) files.push_back(file(i));
    return zip(files);
  };
}

void search_names(const std::string& bytes) {
  pth_names(bytes, "m");
}

const Case pickle_cases[] = {
    {"List", between("](", repeated("K\x01"), "e."), read_as_pickle},
    {"AppendsOneByOne", between("]", repeated("Na"), "."), read_as_pickle},
    {"CallsOfAnAppendMethod", between("cm\nn\n)R", repeated("Na"), "."), read_as_pickle},
    {"NestedTuples", between("N", repeated("\x85"), "."), read_as_pickle},
    {"Marks", [](int parts) { return std::string(parts, '(') + "N" + std::string(parts, 't') + "."; },
     read_as_pickle},
    {"Memo", between("N", repeated([](int i) { return fmt::format("p{0}\ng{0}\n0", i); }), "."),
     read_as_pickle},
    {"CollidingMemoKeys", colliding_keys, read_as_pickle},
    {"Names", between("N", repeated([](int i) { return fmt::format("cmodule\nname{}\n0", i); }), "."),
     read_as_pickle},
    {"OneText", between("V", repeated("\\u00fc"), "\n."), read_as_pickle},
    {"ZippedTensors", zipped_state_dict, [](const std::string& bytes) { parse_pth(bytes, "m"); }, 500},
    {"LegacyTensors", legacy_state_dict, [](const std::string& bytes) { parse_pth(bytes, "m"); }, 500},
    {"NamesAfterDamage", between("\x80\x04\xFF", repeated("cos\nsystem\n"), ""), search_names},
    {"LinesAfterDamage", between("\x80\x04\xFF", repeated("c\n"), ""), search_names},
    {"LettersAfterDamage", between("\x80\x04\xFF", repeated("ci"), "\na\n"), search_names},
    {"TextsAfterDamage", between("\x80\x04\xFF", repeated("\x8c\x02os\x8c\x02xy"), ""), search_names},
    {"LengthsAfterDamage", between("\x80\x04\xFF", repeated("\x8c"), ""), search_names},
    {"PicklesOneAfterTheOther", repeated("(NNNNNNt."), search_names},
    {"PicklesInAnArchive",
     zip_of([](int i) { return ZippedFile{.name = fmt::format("{}.pkl", i), .contents = "cos\nsystem\n."}; }),
     search_names},
    {"NamesOfAFile", zipped_state_dict, [](const std::string& bytes) { pth_names(bytes, "m"); }, 500},
};

// ---- archives and data ----

void read_as_zip(const std::string& bytes) {
  std::string unpacked;
  for (const ZipEntry& entry : read_zip(bytes, "z")) unpack_entry(entry, unpacked, "z");
}

// Entries of the directory that all name the first file, whose local header has a long extra field.
std::string entries_of_one_file(int parts) {
  const std::string extra(60'000, '\0');
  std::string local = "PK\x03\x04"s + std::string(26, '\0') + extra;
  local[6] = 8;                                  // sizes follow the data, which the directory confirms
  local.replace(18, 8, std::string(8, '\xFF'));  // or stand in the extra field, if there is one of that kind
  local.replace(28, 2, little_endian(extra.size(), 2));
  std::string directory;
  for (int i = 0; i < parts; ++i)
    directory += "PK\x01\x02"s + std::string(4, '\0') + "\x08" + std::string(37, '\0');
  return local + directory + "PK\x05\x06"s + std::string(4, '\0') +
         little_endian(static_cast<std::uint64_t>(parts), 2) +
         little_endian(static_cast<std::uint64_t>(parts), 2) + little_endian(directory.size(), 4) +
         little_endian(local.size(), 4) + little_endian(0, 2);
}

const Case archive_cases[] = {
    {"ZipEntries",
     zip_of([](int i) { return ZippedFile{.name = fmt::format("f{}", i), .contents = "text"}; }),
     read_as_zip},
    {"DeflatedZipEntries", zip_of([](int i) {
       return ZippedFile{.name = fmt::format("f{}", i), .contents = std::string(100, 'a'), .deflated = true};
     }),
     read_as_zip, 200},
    {"ZipEntriesOfOneFile", entries_of_one_file, read_as_zip},
    {"Gzip", [](int parts) { return gzip(numbered("some text {}\n")(parts)); },
     [](const std::string& bytes) { gunzip(bytes, 1 << 30, "g"); }, 20'000},
    {"GzipMembers", repeated(gzip("a")), [](const std::string& bytes) { gunzip(bytes, 1 << 30, "g"); }},
    {"Tar", repeated([](int i) { return tar_entry(fmt::format("f{}", i), "text"); }),
     [](const std::string& bytes) { read_tar(bytes, "t"); }, 200},
    {"Npz", zip_of([](int i) {
       const std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }\n";
       return ZippedFile{.name = fmt::format("{}.npy", i),
                         .contents = "\x93NUMPY\1\0"s + little_endian(header.size(), 2) + header + "a"};
     }),
     [](const std::string& bytes) { read_npz(bytes, "n"); }, 500},
    {"NpyShape",
     [](int parts) {
       const std::string header =
           "{'descr': '|u1', 'fortran_order': False, 'shape': (" + repeated("1,")(parts) + ")}";
       return "\x93NUMPY\2\0"s + little_endian(header.size(), 4) + header + "a";
     },
     [](const std::string& bytes) { parse_npy(bytes, "n"); }},
    {"Idx",
     [](int parts) {
       const auto count = static_cast<std::uint32_t>(parts);
       std::string bytes("\0\0\x0D\x01", 4);
       for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(count >> shift & 0xFF);
       return bytes + std::string(4 * std::size_t{count}, '\1');
     },
     [](const std::string& bytes) { parse_idx(bytes, "i"); }, 20'000},
};

// ---- packed sets ----

Input packed_set_of(std::function<std::string(int)> name) {
  return [=](int parts) {
    std::map<std::string, std::string> files;
    for (int i = 0; i < parts; ++i) files[name(i)] = "text";
    return packed_bytes(files);
  };
}

const Case packed_cases[] = {
    {"Files", packed_set_of([](int i) { return fmt::format("{:06}.jpg", i); }),
     [](const std::string& bytes) { PackedIndex(bytes, "p").names_in(""); }},
    {"LongNames", packed_set_of([](int i) { return fmt::format("{}/{:06}.jpg", std::string(200, 'a'), i); }),
     [](const std::string& bytes) { PackedIndex(bytes, "p").names_in(""); }},
};

// ---- ONNX ----

std::string onnx_model(const ProtoWriter& graph, const std::vector<ProtoWriter>& metadata = {}) {
  ProtoWriter model;
  model.add_int(1, 8);
  model.add_message(7, graph);
  for (const ProtoWriter& entry : metadata) model.add_message(14, entry);
  return model.take();
}

ProtoWriter with_texts(const std::vector<std::pair<int, std::string>>& fields) {
  ProtoWriter message;
  for (const auto& [field, text] : fields) message.add_bytes(field, text);
  return message;
}

std::string onnx_nodes(int parts) {
  ProtoWriter graph;
  for (int i = 0; i < parts; ++i)
    graph.add_message(1,
                      with_texts({{1, fmt::format("v{}", i)}, {2, fmt::format("v{}", i + 1)}, {4, "Relu"}}));
  graph.add_message(11, with_texts({{1, "v0"}}));
  graph.add_message(12, with_texts({{1, fmt::format("v{}", parts)}}));
  return onnx_model(graph);
}

std::string onnx_constants(int parts) {
  ProtoWriter graph;
  for (int i = 0; i < parts; ++i) {
    ProtoWriter tensor;
    tensor.add_ints(1, {1});
    tensor.add_int(2, 1);
    tensor.add_bytes(8, fmt::format("c{}", i));
    tensor.add_bytes(9, "1234");
    graph.add_message(5, tensor);
  }
  return onnx_model(graph);
}

std::string onnx_values(int parts) {
  ProtoWriter tensor, graph;
  tensor.add_int(1, parts);
  tensor.add_int(2, 1);
  for (int i = 0; i < parts; ++i) tensor.add_float(4, 1);
  graph.add_message(5, tensor);
  return onnx_model(graph);
}

std::string onnx_metadata(int parts) {
  std::vector<ProtoWriter> metadata;
  for (int i = 0; i < parts; ++i) metadata.push_back(with_texts({{1, fmt::format("k{}", i)}, {2, "v"}}));
  return onnx_model({}, metadata);
}

void read_as_onnx(const std::string& bytes) {
  order_problem(parse_onnx(bytes, "o").graph);
}

const Case onnx_cases[] = {
    {"Nodes", onnx_nodes, read_as_onnx},
    {"Constants", onnx_constants, read_as_onnx},
    {"Values", onnx_values, read_as_onnx},
    {"Metadata", onnx_metadata, read_as_onnx},
};

// ---- text ----

void read_as_toml(const std::string& bytes) {
  parse_toml(bytes, "t");
}

const Case toml_cases[] = {
    {"Keys", numbered("key{} = 1\n"), read_as_toml},
    {"DottedKeys", numbered("a.b.c.key{} = 1\n"), read_as_toml},
    {"Tables", numbered("[table{}]\nx = 1\n"), read_as_toml},
    {"NestedTables", numbered("[a.b.c.d.table{}]\n"), read_as_toml},
    {"TableArray", numbered("[[a]]\nx = {}\n"), read_as_toml},
    {"List", between("x = [", numbered("{}, "), "]\n"), read_as_toml},
    {"InlineTable", between("x = {", numbered("k{} = 1, "), "z = 0}\n"), read_as_toml},
    {"OneText", between("x = \"\"\"\n", repeated("line \\n\n"), "\"\"\"\n"), read_as_toml},
    {"Continuations", between("x = \"\"\"\n", repeated("a \\  \n"), "\"\"\"\n"), read_as_toml},
    {"Comments", repeated("# comment\n"), read_as_toml},
    {"Blanks", repeated(" \n"), read_as_toml},
    {"Unfinished", between("x = [", repeated("[ "), ""), read_as_toml},
    {"Damaged", between("x = \"", repeated("a "), ""), read_as_toml},
};

void read_as_recipe(const std::string& bytes) {
  Transform::parse(bytes);
}

const Case recipe_cases[] = {
    {"Operations", repeated("rotate -10 10, "), read_as_recipe},
    {"Blanks", between("rotate", repeated(" "), "-10 10"), read_as_recipe},
    {"Arguments", between("rotate ", repeated("1 "), ""), read_as_recipe},
    {"Kernel", between("blur 1 ", repeated("1 2 3; "), "1 2 3"), read_as_recipe},
    {"OneWord", repeated("a"), read_as_recipe},
};

const HttpLimits wide{.max_header = 1 << 30, .max_fields = 1 << 30, .max_framing = 1 << 30};

void read_as_http(const std::string& bytes) {
  HttpParser parser(wide);
  for (std::size_t used = 0; used < bytes.size();) {
    const std::size_t taken = parser.feed(std::string_view(bytes).substr(used, 7));
    if (taken == 0) return;
    used += taken;
  }
}

const Case http_cases[] = {
    {"Fields", between("GET / HTTP/1.1\r\nhost: a\r\n", numbered("x{}: value\r\n"), "\r\n"), read_as_http},
    {"OneField", between("GET / HTTP/1.1\r\nhost: a\r\nconnection: ", repeated("a, "), "\r\n\r\n"),
     read_as_http},
    {"Chunks",
     between("POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n", repeated("1\r\na\r\n"),
             "0\r\n\r\n"),
     read_as_http},
    {"Body",
     [](int parts) {
       return fmt::format("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n", parts) +
              std::string(static_cast<std::size_t>(parts), 'a');
     },
     read_as_http},
};

// ---- images ----

std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xFF);
  return bytes;
}

std::string png_chunk(const std::string& name, const std::string& data) {
  const std::string checked = name + data;
  const auto crc = static_cast<std::uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(checked.data()), static_cast<uInt>(checked.size())));
  return big_endian(static_cast<std::uint32_t>(data.size())) + checked + big_endian(crc);
}

// One gray pixel after these chunks.
Input png_with(const Input& chunks) {
  std::string data(16, '\0');
  uLongf size = data.size();
  EXPECT_EQ(
      compress(reinterpret_cast<Bytef*>(data.data()), &size, reinterpret_cast<const Bytef*>("\0\x7F"), 2),
      Z_OK);
  data.resize(size);
  return between(
      "\x89PNG\r\n\x1a\n" + png_chunk("IHDR", big_endian(1) + big_endian(1) + "\x08"s + "\0\0\0\0"s), chunks,
      png_chunk("IDAT", data) + png_chunk("IEND", ""));
}

void read_as_image(const std::string& bytes) {
  read_image_info(bytes_of(bytes), "i");
  decode_image(bytes_of(bytes), "i");
}

const Case image_cases[] = {
    {"ExifEntries",
     [](int parts) {
       return "II*\0\x08\0\0\0"s + little_endian(static_cast<std::uint64_t>(parts), 2) +
              std::string(12 * static_cast<std::size_t>(parts), '\0');
     },
     [](const std::string& bytes) { exif_orientation(bytes_of(bytes)); }},
    {"PngChunks", png_with(repeated(png_chunk("abCd", ""))), read_as_image},
    {"PngTexts", png_with(repeated(png_chunk("tEXt", "a\0b"s))), read_as_image},
    {"PngXmp", png_with([](int parts) {
       return png_chunk("iTXt", "XML:com.adobe.xmp\0\0\0\0\0"s + repeated("tiff:Orientation ")(parts));
     }),
     read_as_image},
    {"PngProfile", png_with([](int parts) {
       return png_chunk("tEXt", "Raw profile type exif\0\nexif\n 9\n"s + repeated("4d4d\n")(parts));
     }),
     read_as_image},
    {"BmpRuns",
     [](int parts) {
       return "BM"s + std::string(8, '\0') + little_endian(62, 4) + little_endian(40, 4) +
              little_endian(100, 4) + little_endian(100, 4) + little_endian(1, 2) + little_endian(8, 2) +
              little_endian(1, 4) + std::string(12, '\0') + little_endian(2, 4) + std::string(12, '\0') +
              repeated("\1\1")(parts) + "\0\1"s;
     },
     read_as_image},
    {"HeifReferences",
     [](int parts) {
       const std::string reference =
           "\0\0\0\x34"
           "dimg\0\1\0\x14"s +
           std::string(40, '\2');
       const std::string all = std::string(4, '\0') + repeated(reference)(parts);
       const std::string iref = big_endian(static_cast<std::uint32_t>(8 + all.size())) + "iref" + all;
       return big_endian(static_cast<std::uint32_t>(12 + iref.size())) + "meta" + std::string(4, '\0') + iref;
     },
     [](const std::string& bytes) { heif_references_end(bytes_of(bytes)); }},
    {"PnmComments", between("P5\n", repeated("# comment\n"), "1 1 255\na"), read_as_image},
    {"PlainPnm", [](int parts) { return fmt::format("P2 {} 1 9\n", parts) + repeated("7 ")(parts); },
     read_as_image},
};

// The work of parsing, which may refuse the input.
Work work_of(const Case& one, int parts, std::size_t& size) {
  const std::string bytes = one.input(parts);
  size = bytes.size();
  const Work before = work_so_far();
  try {
    one.parse(bytes);
  } catch (const Error&) {
  }
  const Work after = work_so_far();
  return {after.steps - before.steps, after.allocated - before.allocated};
}

class Complexity : public testing::TestWithParam<Case> {};

TEST_P(Complexity, WorkAndMemory_GrowAtMostLinearly) {
  const Case& one = GetParam();
  std::size_t size = 0;
  work_of(one, 10, size);  // what is done once
  Work last;
  // With some slack for logarithms and for buffers that double; a quadratic algorithm has a factor of 4.
  constexpr double max_growth = 2.6, max_steps_per_byte = 400, max_bytes_per_byte = 300;
  constexpr std::uint64_t constant_steps = 2000, constant_bytes = 300'000;
  for (const int factor : {1, 2, 4}) {
    const Work work = work_of(one, one.parts * factor, size);
    SCOPED_TRACE(fmt::format("{} parts, {} bytes: {} steps, {} bytes allocated", one.parts * factor, size,
                             work.steps, work.allocated));
    if (factor > 1) {
      EXPECT_LE(static_cast<double>(work.steps),
                max_growth * static_cast<double>(last.steps + constant_steps));
      EXPECT_LE(static_cast<double>(work.allocated),
                max_growth * static_cast<double>(last.allocated + constant_bytes));
    }
    EXPECT_LE(static_cast<double>(work.steps),
              max_steps_per_byte * static_cast<double>(size) + double{constant_steps});
    EXPECT_LE(static_cast<double>(work.allocated),
              max_bytes_per_byte * static_cast<double>(size) + double{constant_bytes});
    last = work;
  }
  RecordProperty("steps_per_byte", fmt::format("{:.1f}", double(last.steps) / double(size)));
  RecordProperty("bytes_per_byte", fmt::format("{:.1f}", double(last.allocated) / double(size)));
}

std::string name_of_case(const testing::TestParamInfo<Case>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Safetensors, Complexity, testing::ValuesIn(safetensors_cases), name_of_case);
INSTANTIATE_TEST_SUITE_P(Pickle, Complexity, testing::ValuesIn(pickle_cases), name_of_case);
INSTANTIATE_TEST_SUITE_P(Archive, Complexity, testing::ValuesIn(archive_cases), name_of_case);
INSTANTIATE_TEST_SUITE_P(PackedSet, Complexity, testing::ValuesIn(packed_cases), name_of_case);
INSTANTIATE_TEST_SUITE_P(Onnx, Complexity, testing::ValuesIn(onnx_cases), name_of_case);
INSTANTIATE_TEST_SUITE_P(Toml, Complexity, testing::ValuesIn(toml_cases), name_of_case);
INSTANTIATE_TEST_SUITE_P(Recipe, Complexity, testing::ValuesIn(recipe_cases), name_of_case);
INSTANTIATE_TEST_SUITE_P(Http, Complexity, testing::ValuesIn(http_cases), name_of_case);
INSTANTIATE_TEST_SUITE_P(Image, Complexity, testing::ValuesIn(image_cases), name_of_case);

// The counters count: this program replaces the functions of the C library, and the parsers are instrumented.
TEST(Work, QuadraticSearch_IsCounted) {
  const auto steps = [](std::size_t n) {
    const std::string text(n, 'a');
    const Work before = work_so_far();
    std::size_t found = 0;
    for (std::size_t i = 0; i < n; ++i) found += text.find('b', i) != std::string::npos;
    EXPECT_EQ(found, 0u);
    return work_so_far().steps - before.steps;
  };
  EXPECT_GT(steps(4000), 3 * steps(2000));
  const Work before = work_so_far();
  parse_toml("x = 1\n", "t");
  EXPECT_GT(work_so_far().steps, before.steps + 20);
  EXPECT_GT(work_so_far().allocated, before.allocated);
}

}  // namespace
}  // namespace tandem
