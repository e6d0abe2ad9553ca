#include "tandem/report/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "tandem/report/html.h"
#include "tandem/report/interval.h"

namespace tandem {
namespace {

bool is_jpeg(const std::string& file) {
  return file.starts_with("\xff\xd8");
}

// The width in a PNG's header.
std::uint32_t png_width(const std::string& png) {
  std::uint32_t width = 0;
  for (std::size_t i = 16; i < 20 && i < png.size(); ++i)
    width = width << 8 | static_cast<unsigned char>(png[i]);
  return width;
}

std::string confidence(const ClassifiedImage& image) {
  return percent(image.probability) + " confidence";
}

// Small images are shown enlarged, without smoothing. `attributes` begin with a space.
std::string image_html(const std::string& file, const std::string& attributes) {
  const bool jpeg = is_jpeg(file);
  return fmt::format("<img{}{} src=\"data:image/{};base64,{}\"/>",
                     !jpeg && png_width(file) <= 96 ? " class=\"small\"" : "", attributes,
                     jpeg ? "jpeg" : "png", base64(file));
}

// The image, beside its map if it has one.
std::string picture_html(const ClassifiedImage& image) {
  const std::string name = escape_html(image.name);
  const std::string picture = image_html(image.file, fmt::format(" alt=\"{}\"", name));
  if (image.map.empty()) return picture;
  return fmt::format("<div class=\"pair\">{}{}</div>", picture,
                     image_html(image.map, fmt::format(" alt=\"where {} was found in {}\"",
                                                       escape_html(image.predicted), name)));
}

// A path may be broken after its folder.
std::string name_html(const std::string& name) {
  const std::size_t slash = name.find('/');
  if (slash == std::string::npos) return escape_html(name);
  return escape_html(name.substr(0, slash + 1)) + "<wbr/>" + escape_html(name.substr(slash + 1));
}

}  // namespace

std::string base64(const std::string& bytes) {
  constexpr const char* letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t have = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i)
      group = group << 8 | (i < have ? static_cast<unsigned char>(bytes[at + i]) : 0u);
    for (std::size_t i = 0; i < 4; ++i) text += i <= have ? letters[group >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

std::string percent(double share) {
  return format_accuracy(share, 0);
}

std::string thumbnail_html(const ClassifiedImage& image) {
  const std::string name = escape_html(image.name);
  return image_html(image.file, fmt::format(" alt=\"{}\" title=\"{}, {}\"", name, name, confidence(image)));
}

std::string images_html(const std::vector<ClassifiedImage>& images, bool with_classes) {
  const bool maps = std::ranges::any_of(images, [](const auto& image) { return !image.map.empty(); });
  std::string html = fmt::format("<div class=\"images{}\">\n", maps ? " wide" : "");
  for (const ClassifiedImage& image : images) {
    std::string what;
    if (with_classes) what = fmt::format("<b>{}</b>", escape_html(image.truth));
    if (with_classes && image.truth != image.predicted)
      what += fmt::format(" predicted as <b>{}</b>", escape_html(image.predicted));
    html += fmt::format("<figure>{}<figcaption>{}<span>{}</span><span>{}</span></figcaption></figure>\n",
                        picture_html(image), what, confidence(image), name_html(image.name));
  }
  return html + "</div>\n";
}

std::string images_style() {
  return R"(.images{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:14px;margin:0 0 22px}
.images figure{padding:10px}.images img{display:block;width:100%;aspect-ratio:1;object-fit:contain;background:#000;border-radius:5px}
.images.wide{grid-template-columns:repeat(auto-fill,minmax(min(100%,260px),1fr))}.images .pair{display:grid;grid-template-columns:1fr 1fr;gap:4px}
img.small{image-rendering:pixelated}
.images figcaption{margin-top:8px;font-size:14px;line-height:1.35;overflow-wrap:anywhere}
.images figcaption span{display:block;color:var(--soft);font-size:13px}
@media print{.images{grid-template-columns:repeat(6,1fr);gap:2px 4px;margin-bottom:4px}.images.wide{grid-template-columns:repeat(4,1fr)}.images figure{padding:0;border:0}
.images figcaption{margin-top:1px;font-size:5.5pt;line-height:1.15}.images figcaption span{font-size:5pt}}
)";
}

}  // namespace tandem
