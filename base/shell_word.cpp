#include "base/shell_word.hpp"

#include <algorithm>
#include <boost/algorithm/string/replace.hpp>

namespace sluice {

namespace {

bool is_plain(char byte) {
  return static_cast<unsigned char>(byte) >= 0x80 || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
         (byte >= '0' && byte <= '9') || std::string_view("_-./:@%+=,").find(byte) != std::string_view::npos;
}

}  // namespace

std::string shell_word(std::string_view text) {
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_plain)) {
    return std::string(text);
  }
  return "'" + boost::replace_all_copy(std::string(text), "'", R"('\'')") + "'";
}

}  // namespace sluice
