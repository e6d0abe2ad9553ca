// Which sanitizer the tests were built with, for the few that cannot run under it.
#pragma once

namespace tandem {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool address_sanitized = true;
#else
inline constexpr bool address_sanitized = false;
#endif

#if defined(__SANITIZE_THREAD__)
inline constexpr bool thread_sanitized = true;
#else
inline constexpr bool thread_sanitized = false;
#endif

}  // namespace tandem
