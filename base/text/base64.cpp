#include "base/text/base64.hpp"

#include <openssl/evp.h>

#include <cstddef>
#include <utility>

namespace sluice {

namespace {

unsigned char* place(std::string& text, std::size_t at) { return reinterpret_cast<unsigned char*>(text.data() + at); }
const unsigned char* bytes_of(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

}  // namespace

void append_base64(std::string& out, std::string_view bytes) {
  const std::size_t before = out.size();
  out.resize(before + (bytes.size() + 2) / 3 * 4 + 1);  // OpenSSL writes a zero behind the text
  EVP_EncodeBlock(place(out, before), bytes_of(bytes), static_cast<int>(bytes.size()));
  out.pop_back();
}

std::string base64(std::string_view bytes) {
  std::string text;
  append_base64(text, bytes);
  return text;
}

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) {
    return std::nullopt;
  }
  std::string bytes(text.size() / 4 * 3, '\0');
  const bool good = EVP_DecodeBlock(place(bytes, 0), bytes_of(text), static_cast<int>(text.size())) >= 0;
  bytes.resize(bytes.size() - (text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0));
  // OpenSSL passes over white space and stray bits; they do not come back.
  return good && base64(bytes) == text ? std::optional(std::move(bytes)) : std::nullopt;
}

}  // namespace sluice
