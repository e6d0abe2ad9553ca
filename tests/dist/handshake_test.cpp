#include "tandem/dist/handshake.h"

#include "tests/core/error_text.h"

namespace tandem {
namespace {

Greeting greeting(int rank, const std::string& host, NamedTexts texts) {
  return {.place = {.rank = rank, .size = 4, .host = host, .pid = 100 + rank},
          .must_agree = std::move(texts)};
}

TEST(Handshake, Greeting_IsDecodedAsItWasEncoded) {
  Greeting sent = greeting(3, "n4", {{"version", "0.1.0"}, {"options", "a:b\n3:x"}, {"", ""}});
  sent.process_domain = "pid:[4]";
  const Greeting received = decode(encode(sent));
  EXPECT_EQ(received.place.rank, 3);
  EXPECT_EQ(received.place.size, 4);
  EXPECT_EQ(received.place.host, "n4");
  EXPECT_EQ(received.place.pid, 103);
  EXPECT_EQ(received.process_domain, "pid:[4]");
  EXPECT_EQ(received.must_agree, sent.must_agree);
  const std::string text = encode(sent);
  for (const std::string& wrong :
       {text.substr(0, 7), text + "5:abc", text + "x", std::string("99999999999999999999:a")})
    EXPECT_EQ(error_text([&] { decode(wrong); }), "[group] expected a greeting, got something else") << wrong;
}

TEST(Handshake, FirstDifference_NamesBothRanksAndValues) {
  const NamedTexts texts{{"version", "0.1.0"}, {"data", "mnist"}};
  check_agreement({greeting(0, "n1", texts), greeting(1, "n1", texts)});
  EXPECT_EQ(error_text([&] {
              check_agreement({greeting(0, "n1", texts), greeting(1, "n1", texts),
                               greeting(2, "n2", {{"version", "0.2.0"}, {"data", "digits"}})});
            }),
            "[group] ranks 0 (host n1) and 2 (host n2) differ in version: 0.1.0 and 0.2.0");
}

TEST(Handshake, LongTexts_AreCutToTheDifference) {
  std::string a(500, 'a'), b = a;
  b[300] = 'b';
  const std::string text = error_text([&] {
    check_agreement({greeting(0, "n1", {{"options", a}}), greeting(1, "n2", {{"options", b}})});
  });
  EXPECT_LT(text.size(), 240U);
  EXPECT_NE(text.find("…" + std::string(20, 'a') + "b" + std::string(39, 'a') + "…"), std::string::npos)
      << text;
}

TEST(Handshake, TextOfOneRankOnly_IsNamed) {
  EXPECT_EQ(error_text([] {
              check_agreement({greeting(0, "n1", {}), greeting(1, "n2", {{"GPU", "H200"}})});
            }),
            "[group] rank 1 (host n2) has GPU for rank 0 (host n1) to agree with, which has none");
}

TEST(Handshake, Processes_AreVisibleOnTheSameHostAndInTheSameDomain) {
  std::vector<Greeting> ranks;
  for (const char* domain : {"a", "b", "a", "", "a"}) {
    ranks.push_back(greeting(static_cast<int>(ranks.size()), ranks.size() < 4 ? "n1" : "n2", {}));
    ranks.back().process_domain = domain;
  }
  EXPECT_EQ(visible_processes(ranks, 0), (std::vector{2}));
  EXPECT_EQ(visible_processes(ranks, 1), std::vector<int>());
  EXPECT_EQ(visible_processes(ranks, 3), std::vector<int>());  // not known
}

TEST(Handshake, Nodes_AreNumberedByHost) {
  const std::vector<Place> places = number_nodes(
      {greeting(0, "n2", {}), greeting(1, "n1", {}), greeting(2, "n2", {}), greeting(3, "n2", {})});
  EXPECT_EQ(places[3].node, 0);
  EXPECT_EQ(places[3].local_rank, 2);
  EXPECT_EQ(places[3].local_size, 3);
  EXPECT_EQ(places[1].node, 1);
  EXPECT_EQ(places[1].local_rank, 0);
  EXPECT_EQ(places[1].local_size, 1);
}

}  // namespace
}  // namespace tandem
