#include "tandem/data/synthetic/digit_strokes.h"

#include "tandem/core/error.h"

namespace tandem {
namespace {

constexpr bool corner = true;

template <std::size_t N>
using Stroke = std::array<GridPoint, N>;

constexpr Stroke<9> zero_a{
    {{50, 0}, {17, 14}, {1, 50}, {16, 87}, {50, 100}, {84, 86}, {99, 50}, {83, 13}, {48, 1}}};
constexpr Stroke<9> zero_b{
    {{72, 6}, {32, 4}, {4, 38}, {10, 84}, {48, 100}, {91, 76}, {96, 32}, {66, 1}, {36, 8}}};
constexpr Stroke<8> zero_c{{{60, 0}, {24, 24}, {8, 64}, {28, 99}, {66, 86}, {92, 42}, {78, 4}, {48, 10}}};
constexpr Stroke<8> zero_d{{{38, 4}, {8, 40}, {14, 88}, {55, 99}, {93, 62}, {84, 14}, {50, 0}, {25, 14}}};
constexpr std::array zero_styles{DigitStyle{{zero_a}}, DigitStyle{{zero_b}}, DigitStyle{{zero_c}},
                                 DigitStyle{{zero_d}}};

constexpr Stroke<2> one_a{{{50, 0}, {50, 100}}};
constexpr Stroke<3> one_b{{{22, 27}, {54, 0, corner}, {54, 100}}};
constexpr Stroke<3> one_c{{{22, 24}, {52, 0, corner}, {52, 100, corner}}};
constexpr Stroke<2> one_c_2{{{18, 100}, {86, 99}}};
constexpr Stroke<3> one_d{{{66, 0}, {48, 52}, {36, 100}}};
constexpr std::array one_styles{DigitStyle{{one_a}}, DigitStyle{{one_b}}, DigitStyle{{one_c, one_c_2}},
                                DigitStyle{{one_d}}};

constexpr Stroke<7> two_a{{{8, 26}, {30, 3}, {70, 4}, {86, 29}, {60, 64}, {5, 99, corner}, {96, 97}}};
constexpr Stroke<9> two_b{
    {{8, 22}, {45, 0}, {86, 20}, {72, 55}, {32, 88}, {8, 96}, {14, 78}, {42, 86}, {97, 95}}};
constexpr Stroke<7> two_c{{{10, 14}, {54, 0}, {90, 20}, {56, 60}, {8, 98, corner}, {52, 92}, {97, 99}}};
constexpr Stroke<9> two_d{
    {{14, 30}, {36, 2}, {80, 8}, {80, 40}, {46, 74}, {6, 97}, {30, 88}, {64, 99}, {98, 86}}};
constexpr std::array two_styles{DigitStyle{{two_a}}, DigitStyle{{two_b}}, DigitStyle{{two_c}},
                                DigitStyle{{two_d}}};

constexpr Stroke<9> three_a{
    {{10, 13}, {48, 0}, {84, 20}, {66, 41}, {36, 47, corner}, {74, 54}, {92, 76}, {56, 100}, {6, 88}}};
constexpr Stroke<7> three_b{
    {{10, 3, corner}, {88, 4, corner}, {44, 42, corner}, {84, 58}, {84, 90}, {42, 100}, {4, 87}}};
constexpr Stroke<9> three_c{
    {{12, 16}, {44, 0}, {80, 17}, {62, 41}, {34, 49}, {50, 44}, {88, 66}, {72, 97}, {8, 92}}};
constexpr Stroke<8> three_d{
    {{6, 8}, {52, 2}, {86, 24}, {42, 46, corner}, {88, 62}, {78, 94}, {34, 100}, {0, 90}}};
constexpr std::array three_styles{DigitStyle{{three_a}}, DigitStyle{{three_b}}, DigitStyle{{three_c}},
                                  DigitStyle{{three_d}}};

constexpr Stroke<3> four_a{{{22, 0}, {10, 55, corner}, {96, 54}}};
constexpr Stroke<2> four_a_2{{{74, 14}, {68, 100}}};
constexpr Stroke<3> four_b{{{70, 0, corner}, {4, 64, corner}, {99, 64}}};
constexpr Stroke<2> four_b_2{{{70, 0}, {70, 100}}};
constexpr Stroke<4> four_c{{{15, 4}, {10, 46}, {42, 58}, {82, 40}}};
constexpr Stroke<2> four_c_2{{{87, 0}, {76, 100}}};
constexpr Stroke<4> four_d{{{72, 100}, {80, 0, corner}, {6, 62, corner}, {100, 58}}};
constexpr std::array four_styles{DigitStyle{{four_a, four_a_2}}, DigitStyle{{four_b, four_b_2}},
                                 DigitStyle{{four_c, four_c_2}}, DigitStyle{{four_d}}};

constexpr Stroke<7> five_a{
    {{86, 2, corner}, {24, 3, corner}, {18, 44, corner}, {62, 38}, {93, 68}, {56, 100}, {4, 89}}};
constexpr Stroke<6> five_b{{{30, 4}, {20, 46, corner}, {64, 40}, {90, 72}, {50, 100}, {4, 87}}};
constexpr Stroke<2> five_b_2{{{30, 4}, {96, 0}}};
constexpr Stroke<7> five_c{{{92, 6}, {42, 2}, {14, 24}, {46, 48}, {86, 70}, {64, 98}, {4, 94}}};
constexpr Stroke<7> five_d{
    {{80, 0, corner}, {34, 4, corner}, {14, 50, corner}, {56, 44}, {84, 62}, {72, 96}, {12, 98}}};
constexpr std::array five_styles{DigitStyle{{five_a}}, DigitStyle{{five_b, five_b_2}}, DigitStyle{{five_c}},
                                 DigitStyle{{five_d}}};

constexpr Stroke<8> six_a{{{76, 0}, {30, 24}, {4, 64}, {28, 99}, {74, 95}, {90, 70}, {60, 52}, {14, 68}}};
constexpr Stroke<7> six_b{{{60, 0}, {14, 58}, {18, 94}, {64, 100}, {86, 72}, {50, 55}, {14, 76}}};
constexpr Stroke<9> six_c{
    {{86, 12}, {56, 0}, {14, 34}, {6, 78}, {44, 100}, {90, 82}, {76, 55}, {36, 52}, {10, 76}}};
constexpr Stroke<8> six_d{{{44, 0}, {12, 44}, {8, 86}, {46, 100}, {82, 80}, {66, 54}, {30, 62}, {10, 82}}};
constexpr std::array six_styles{DigitStyle{{six_a}}, DigitStyle{{six_b}}, DigitStyle{{six_c}},
                                DigitStyle{{six_d}}};

constexpr Stroke<3> seven_a{{{4, 5, corner}, {95, 4, corner}, {40, 100}}};
constexpr Stroke<5> seven_b{{{4, 14}, {40, 4}, {92, 6}, {62, 50}, {46, 100}}};
constexpr Stroke<3> seven_c{{{4, 5, corner}, {93, 4, corner}, {38, 100}}};
constexpr Stroke<2> seven_c_2{{{22, 53}, {82, 48}}};
constexpr Stroke<5> seven_d{{{8, 24, corner}, {10, 4, corner}, {93, 6, corner}, {56, 45}, {38, 100}}};
constexpr std::array seven_styles{DigitStyle{{seven_a}}, DigitStyle{{seven_b}},
                                  DigitStyle{{seven_c, seven_c_2}}, DigitStyle{{seven_d}}};

constexpr Stroke<10> eight_a{
    {{80, 13}, {46, 0}, {14, 20}, {44, 45}, {86, 72}, {50, 100}, {10, 78}, {44, 51}, {82, 28}, {70, 5}}};
constexpr Stroke<5> eight_b{{{50, 0}, {18, 21}, {50, 46}, {82, 22}, {50, 0}}};
constexpr Stroke<5> eight_b_2{{{50, 46}, {10, 74}, {50, 100}, {90, 74}, {50, 46}}};
constexpr Stroke<9> eight_c{
    {{86, 8}, {50, 2}, {18, 22}, {50, 48}, {82, 75}, {50, 100}, {16, 78}, {50, 50}, {92, 10}}};
constexpr Stroke<9> eight_d{
    {{50, 48}, {84, 24}, {56, 0}, {18, 18}, {42, 46}, {84, 74}, {50, 100}, {12, 80}, {50, 48}}};
constexpr std::array eight_styles{DigitStyle{{eight_a}}, DigitStyle{{eight_b, eight_b_2}},
                                  DigitStyle{{eight_c}}, DigitStyle{{eight_d}}};

constexpr Stroke<8> nine_a{
    {{86, 20}, {50, 0}, {12, 22}, {30, 52}, {74, 46}, {89, 18, corner}, {86, 60}, {74, 100}}};
constexpr Stroke<7> nine_b{{{86, 10}, {40, 0}, {8, 30}, {40, 56}, {80, 36}, {89, 8, corner}, {70, 100}}};
constexpr Stroke<8> nine_c{{{86, 26}, {50, 0}, {10, 25}, {40, 53}, {86, 26}, {86, 70}, {54, 100}, {12, 92}}};
constexpr Stroke<6> nine_d{{{80, 12}, {36, 4}, {14, 38}, {52, 50}, {84, 10, corner}, {80, 100}}};
constexpr std::array nine_styles{DigitStyle{{nine_a}}, DigitStyle{{nine_b}}, DigitStyle{{nine_c}},
                                 DigitStyle{{nine_d}}};

}  // namespace

std::span<const DigitStyle> digit_styles(int digit) {
  constexpr std::array<std::span<const DigitStyle>, 10> styles{
      zero_styles, one_styles, two_styles,   three_styles, four_styles,
      five_styles, six_styles, seven_styles, eight_styles, nine_styles};
  expect(digit >= 0 && digit < 10);
  return styles[static_cast<std::size_t>(digit)];
}

}  // namespace tandem
