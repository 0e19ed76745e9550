#include "config/syntax.hpp"

#include <arpa/inet.h>

#include <algorithm>

namespace sluice::config {

namespace {

constexpr std::size_t kMaxShown = 64;
constexpr std::size_t kMaxPath = 4095;

bool is_name_character(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '-' || c == '.'; }

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

bool has_control(std::string_view text) { return std::any_of(text.begin(), text.end(), is_control); }

/// The length of the well-formed UTF-8 sequence at the head of `text`; 0 when there is none.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xc0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first < 0x80) {
    return 1;
  }
  if (first >= 0xc2 && first <= 0xdf) {
    return continues(1) ? 2 : 0;
  }
  if (first >= 0xe0 && first <= 0xef) {
    const bool shortest = first != 0xe0 || byte(1) >= 0xa0;
    const bool surrogate = first == 0xed && byte(1) >= 0xa0;
    return shortest && !surrogate && continues(1) && continues(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool in_range = (first != 0xf0 || byte(1) >= 0x90) && (first != 0xf4 || byte(1) <= 0x8f);
    return in_range && continues(1) && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

bool is_port(std::string_view text) {
  if (text.empty() || text.size() > 5 || !std::all_of(text.begin(), text.end(), is_digit)) {
    return false;
  }
  return std::stoul(std::string(text)) <= 65535;
}

bool is_dns_name(std::string_view text) {
  return !text.empty() && text.size() <= 253 && text.front() != '-' && text.front() != '.' &&
         std::all_of(text.begin(), text.end(), is_name_character);
}

bool is_host(std::string_view text) {
  if (text.size() > 2 && text.front() == '[' && text.back() == ']') {
    in6_addr address{};
    return inet_pton(AF_INET6, std::string(text.substr(1, text.size() - 2)).c_str(), &address) == 1;
  }
  const bool numeric = std::all_of(text.begin(), text.end(), [](char c) { return is_digit(c) || c == '.'; });
  if (numeric) {
    in_addr address{};
    return inet_pton(AF_INET, std::string(text).c_str(), &address) == 1;
  }
  return is_dns_name(text);
}

bool is_host_and_port(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  return colon != std::string_view::npos && is_host(text.substr(0, colon)) && is_port(text.substr(colon + 1));
}

}  // namespace

std::size_t find_invalid_utf8(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    const std::size_t length = sequence_length(text.substr(i));
    if (length == 0) {
      return i;
    }
    i += length;
  }
  return std::string_view::npos;
}

std::string one_line(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string result;
  for (const char c : text) {
    if (c == '\n') {
      result += "\\n";
    } else if (is_control(c)) {
      const auto byte = static_cast<unsigned char>(c);
      result += {'\\', 'x', kHex[byte >> 4U], kHex[byte & 15U]};
    } else {
      result += c;
    }
  }
  return result;
}

std::string abridged(std::string_view text) {
  if (text.size() <= kMaxShown) {
    return one_line(text);
  }
  std::size_t end = kMaxShown;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) {
    --end;
  }
  return one_line(text.substr(0, end)) + "...";
}

const char* name_complaint(const std::string& text) {
  const bool good = !text.empty() && text.size() <= 128 && (is_letter(text[0]) || is_digit(text[0])) &&
                    std::all_of(text.begin(), text.end(), is_name_character);
  return good ? nullptr : "1 to 128 letters, digits, '_', '-' or '.', beginning with a letter or digit";
}

const char* table_complaint(const std::string& text) {
  const bool good = text.size() >= 3 && text.size() <= 255 && std::all_of(text.begin(), text.end(), is_name_character);
  return good ? nullptr : "3 to 255 letters, digits, '_', '-' or '.'";
}

const char* host_name_complaint(const std::string& text) {
  const bool good = !text.empty() && text.size() <= 255 && !has_control(text) && text.find(' ') == std::string::npos;
  return good ? nullptr : "1 to 255 characters without spaces";
}

const char* listen_complaint(const std::string& text) {
  return text.empty() || is_host_and_port(text) ? nullptr
                                                : "\"host:port\", such as \"127.0.0.1:9464\" or \"[::1]:9464\"";
}

const char* endpoint_complaint(const std::string& text) {
  constexpr const char* kComplaint = "\"http://host:port\" or \"https://host\", without a path";
  if (text.empty()) {
    return nullptr;
  }
  const std::string_view view = text;
  const std::size_t scheme = view.rfind("http://", 0) == 0 ? 7 : view.rfind("https://", 0) == 0 ? 8 : 0;
  if (scheme == 0) {
    return kComplaint;
  }
  std::string_view authority = view.substr(scheme);
  if (!authority.empty() && authority.back() == '/') {
    authority.remove_suffix(1);
  }
  return is_host(authority) || is_host_and_port(authority) ? nullptr : kComplaint;
}

const char* region_complaint(const std::string& text) {
  const bool good = text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
                      return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-';
                    });
  return good ? nullptr : "an AWS region, such as \"eu-west-1\"";
}

const char* path_complaint(const std::string& text) {
  if (text == ":memory:") {
    return "a file: the queue outlives the process, so there is no ':memory:'";
  }
  const bool good = !text.empty() && text.size() <= kMaxPath && text.find('\0') == std::string::npos;
  return good ? nullptr : "a path of 1 to 4095 bytes";
}

const char* pattern_complaint(const std::string& text) {
  const std::size_t slash = text.rfind('/');
  if (slash != std::string::npos && text.find_first_of("*?") < slash) {
    return "a path with '*' and '?' only in the file's name, not in a folder's";
  }
  if (slash != std::string::npos && slash + 1 == text.size()) {
    return "files, such as \"jobs.d/*.toml\", not a folder";
  }
  return path_complaint(text);
}

}  // namespace sluice::config
