// The calls that change files, made and recorded in one step: what power_loss.py needs to rebuild a folder as
// a disk would have it after a crash. Without TANDEM_FAULT_LOG the calls are only made.
//
// A record is a line of words, and after W that many bytes:
//   C INODE PATH    a new file          W INODE OFFSET BYTES   T INODE SIZE      S INODE   synced
//   D INODE PATH    a new folder        R FROM\0TO   renamed   L FROM\0TO linked U PATH    F  all synced
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdio>

namespace tandem_faults {

// Of the files below the folder TANDEM_FAULT_FOLDER.
void open_file_log();

int log_open(int folder, const char* path, int flags, mode_t mode);
FILE* log_fopen(const char* path, const char* mode);
ssize_t log_write(int fd, const void* data, std::size_t size, off_t offset);  // offset −1: at the position
int log_sync(int fd, long call);
int log_rename(const char* from, const char* to);
int log_link(const char* from, const char* to);
int log_unlink(const char* path);
int log_truncate(int fd, off_t size);
int log_truncate(const char* path, off_t size);
int log_mkdir(const char* path, mode_t mode);

}  // namespace tandem_faults
