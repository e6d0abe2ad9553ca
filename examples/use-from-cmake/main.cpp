// The least a project outside Tandem does with it: call the library, and print the error it throws.
#include <tandem/core/check.h>

#include <cstdio>

int main() {
  try {
    tandem::check(false, "expected {} wheels, got {}", 2, 1);
  } catch (const tandem::Error& error) {
    std::printf("Tandem says: %s\n", error.what());
  }
}
