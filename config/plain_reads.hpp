#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/reader.hpp"

/// Keys of kinds that few sections have.
namespace sluice::config {

/// true or false.
void read_flag(Section& section, Reader& reader, const std::string& key, bool& target);
/// A number from 0 to 1, as a number or as text out of the environment.
void read_share(Section& section, Reader& reader, const std::string& key, double& target);
/// A number from 0 on, or with `positive` above it, and at most a billion; as a number or as text out of the
/// environment. `example` goes into the error.
void read_amount(Section& section, Reader& reader, const std::string& key, double& target, bool positive,
                 const char* example);
/// A day of the calendar, as a TOML date or as text of that form.
void read_day(Section& section, Reader& reader, const std::string& key, std::string& target);
/// A table of strings; no value of it appears in an error.
void read_texts(Section& section, Reader& reader, const std::string& key, std::map<std::string, std::string>& target);
/// A text that no error shows.
void read_secret(Section& section, Reader& reader, const std::string& key, std::string& target, Complaint complaint);
/// An address. One that names a user is no good here, and as it may name his password too, no error shows it.
void read_url(Section& section, Reader& reader, const std::string& key, std::string& target, Complaint complaint);

/// What an HTTP header may carry, and not nothing.
const char* token_complaint(const std::string& text);
/// At most 255 bytes without control characters.
const char* label_complaint(const std::string& text);

/// "http://" or "https://", a host and perhaps a port; `path`: and perhaps a path. Without user, query and fragment.
bool is_http_url(std::string_view text, bool path);

}  // namespace sluice::config
