#include "dynamo/credentials/text.hpp"

#include <algorithm>
#include <fstream>

namespace sluice::dynamo {

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n\f\v";
  const auto first = text.find_first_not_of(kBlank);
  return first == std::string_view::npos ? std::string_view()
                                         : text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

Result<std::optional<std::string>> read_file(const std::filesystem::path& path) {
  std::error_code failure;
  const auto status = std::filesystem::status(path, failure);
  if (status.type() == std::filesystem::file_type::not_found) {
    return std::optional<std::string>();
  }
  const auto unreadable = [&](const std::string& why) {
    return Error(ErrorKind::no_credentials, path.string() + ": cannot be read: " + why);
  };
  if (std::filesystem::is_directory(status)) {
    return unreadable("it is a folder");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return unreadable("may this user read it?");
  }
  std::string text(kMaxCredentialFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) {
    return unreadable("an error of the disk");
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMaxCredentialFileBytes) {
    return unreadable("it is larger than " + std::to_string(kMaxCredentialFileBytes) + " bytes");
  }
  return std::optional<std::string>(std::move(text));
}

}  // namespace sluice::dynamo
