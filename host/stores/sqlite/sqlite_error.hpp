#pragma once

#include <string>

#include "base/error.hpp"

namespace sluice::queue::sqlite {

/// What a failed SQLite call means to a user: the code to branch on and one line with the mend.
/// `code` is SQLite's extended result code, `system_errno` the errno it keeps (0: none), `text` its own message.
Error explain(int code, int system_errno, const std::string& text, const std::string& path);
/// The same of a system call of our own.
Error explain_system(int system_errno, const std::string& path);

}  // namespace sluice::queue::sqlite
