// Images in the bodies of requests.
#include "tandem/serve/request_images.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/core/error_text.h"
#include "tests/serve/fuzz_inputs.h"

namespace tandem {
namespace {

HttpRequest request(std::string type, std::string body) {
  return {.method = HttpMethod::post,
          .path = "/",
          .fields = {{"content-type", std::move(type)}},
          .body = std::move(body)};
}

std::vector<std::pair<std::string, std::string>> images_of(const HttpRequest& asked) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const RequestImage& image : request_images(asked).images)
    all.emplace_back(image.name, std::string(image.bytes));
  return all;
}
using Images = std::vector<std::pair<std::string, std::string>>;

std::string part(const std::string& header, const std::string& body) {
  return "--x\r\nContent-Disposition: form-data; " + header + "\r\n\r\n" + body + "\r\n";
}

TEST(RequestImages, Body_IsOneImage) {
  EXPECT_EQ(images_of(request("image/jpeg", "abc")), (Images{{"", "abc"}}));
  EXPECT_EQ(images_of(request("Application/Octet-Stream; a=b", "abc")), (Images{{"", "abc"}}));
  EXPECT_TRUE(has_image_type(request("IMAGE/png", "")));
  for (const char* const type : {"", "text/plain", "application/x-www-form-urlencoded", "imagex/png"})
    EXPECT_FALSE(has_image_type(request(type, ""))) << type;
}

TEST(RequestImages, Form_GivesItsFiles) {
  const std::string type = "multipart/form-data; boundary=x";
  const std::string body =
      part("name=\"a\"; filename=\"one.png\"", "1\r\n--y") + part("name=\"note\"", "text") +
      part("name=a; filename=\"../../etc/\\\"pass;wd\"", std::string("\0\r\n", 3)) + "--x--\r\n";
  EXPECT_EQ(images_of(request(type, body)),
            (Images{{"one.png", "1\r\n--y"}, {"../../etc/\"pass;wd", std::string("\0\r\n", 3)}}));
  EXPECT_EQ(images_of(request("multipart/form-data; charset=a; boundary=\"x\"", body)).size(), 2u);
}

TEST(RequestImages, DamagedForm_IsRefused) {
  const std::string whole = part("name=a; filename=b", "image") + "--x--\r\n";
  const auto text = [](const std::string& type, const std::string& body) {
    const HttpRequest asked = request(type, body);
    return error_text([&] { request_images(asked); });
  };
  const std::string type = "multipart/form-data; boundary=x";
  EXPECT_EQ(text("multipart/form-data", whole),
            "[serve] expected multipart/form-data with a boundary of 1 to 70 characters");
  EXPECT_EQ(text("multipart/form-data; boundary=" + std::string(71, 'x'), whole),
            "[serve] expected multipart/form-data with a boundary of 1 to 70 characters");
  EXPECT_EQ(text(type, ""), "[serve] expected a form that begins with its boundary");
  EXPECT_EQ(text(type, "--x--\r\n"), "[serve] expected an image in the request, got none");
  EXPECT_EQ(text(type, part("name=a", "b") + "--x--\r\n"),
            "[serve] expected an image in the request, got none");
  EXPECT_EQ(text(type, part("name=a; filename=b", "image")),
            "[serve] expected a form that ends with its boundary, got one cut short");
  for (std::size_t cut = 0; cut + 4 < whole.size(); ++cut)
    EXPECT_NE(text(type, whole.substr(0, cut)), "") << cut;
  std::string many;
  for (int i = 0; i < 257; ++i) many += part("name=a; filename=b", "i");
  EXPECT_EQ(text(type, many + "--x--\r\n"), "[serve] expected at most 256 images in one request");
}

TEST(RequestImages, Json_IsDecoded) {
  EXPECT_EQ(images_of(request("application/json", R"({"images": ["aGVsbG8=", "AAEC"]})")),
            (Images{{"", "hello"}, {"", std::string("\0\1\2", 3)}}));
  for (const std::string& bad :
       {std::string(), std::string("[]"), std::string(R"({"images": "aGVsbG8="})"),
        std::string(R"("aGVsbG8=")"), std::string(R"({"images": [1]})"),
        std::string(R"({"images": [["aGVsbG8="]]})"), std::string(R"({"path": ["aGVsbG8="]})"),
        std::string(R"({"images": [], "images": []})"), std::string(R"({"images": ["aGVsbG8="])"),
        std::string(R"({"images": ["aGVsbG8="]} x)"), std::string(1 << 20, '[')}) {
    const HttpRequest asked = request("application/json", bad);
    EXPECT_EQ(error_text([&] { request_images(asked); }),
              "[serve] expected JSON as {\"images\": [\"base64\", ...]}")
        << bad.substr(0, 80);
  }
  const HttpRequest none = request("application/json", R"({"images": []})");
  EXPECT_EQ(error_text([&] { request_images(none); }), "[serve] expected an image in the request, got none");
}

TEST(RequestImages, Base64_IsStrict) {
  EXPECT_EQ(decode_base64(""), "");
  EXPECT_EQ(decode_base64("/+8="), "\xff\xef");
  for (const char* const bad :
       {"a", "ab", "abc", "ab=", "a===", "ab==cd==", "a b=", "ab\n=", "aGVsbG9=", "=", "-_8="})
    EXPECT_EQ(error_text([&] { decode_base64(bad); }), "[serve] expected base64, got something else") << bad;
}

TEST(RequestImages, RandomDamage_NeverBreaksThem) {
  std::mt19937 random(7);
  const std::string form =
      part("name=\"a\"; filename=\"b;\\\"c\"", "one") + part("name=n", "text") + "--x--\r\n";
  const std::string json = R"({"images": ["aGVsbG8=", "AAEC"]})";
  const int inputs = fuzz_inputs(100'000);
  for (int i = 0; i < inputs; ++i) {
    std::string body = i % 2 == 0 ? form : json;
    for (auto n = 1 + random() % 3; n > 0; --n) {
      const std::size_t at = random() % body.size();
      if (random() % 2 == 0)
        body[at] = static_cast<char>(random());
      else
        body.erase(at, random() % 6);
      if (body.empty()) body = "-";
    }
    const HttpRequest asked =
        request(i % 2 == 0 ? "multipart/form-data; boundary=x" : "application/json", body);
    try {
      for (const RequestImage& image : request_images(asked).images)
        ASSERT_LE(image.bytes.size(), body.size());
    } catch (const Error&) {
    }
  }
}

}  // namespace
}  // namespace tandem
