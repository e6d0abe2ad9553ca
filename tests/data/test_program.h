// The test program is also the program its tests start: with one of these roles as its first word it plays
// that role and runs no test.
#pragma once

#include "tests/process/start_self.h"

namespace tandem {

void register_test_datasets();    // dataset_test.cpp
void register_test_operations();  // own_operation_loader_test.cpp

int loader_worker(const Words& words);  // loader_process_test.cpp
int loader_parent(const Words& words);  // loader_process_test.cpp
int bound_loader(const Words& words);   // loader_process_test.cpp

}  // namespace tandem
