#pragma once

#include <string>
#include <string_view>

namespace sluice::queue {

/// An error's text without what differs from one failure to the next: `#` for numbers, `<id>`, `<hex>`, `<uuid>`,
/// `<address>`, `<path>` and `<time>` for what they name, one space for each gap. Of its first line, and no more than
/// a few hundred bytes of that. Folding a folded text gives it back.
std::string folded_error(std::string_view error);

/// The short name of all errors that are folded to the same text: eight hexadecimal digits, the same on every machine.
std::string fingerprint_of(std::string_view error);

/// True for a text that `fingerprint_of` may have given.
bool is_fingerprint(std::string_view text);

}  // namespace sluice::queue
