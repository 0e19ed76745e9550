#include "dynamo/settings.hpp"

#include <algorithm>
#include <array>
#include <boost/algorithm/string/case_conv.hpp>
#include <cstdlib>
#include <fstream>
#include <locale>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/ranges.hpp"
#include "base/text/joined.hpp"

namespace sluice::dynamo {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t'; }
bool is_comment(char c) { return c == '#' || c == ';'; }

/// The text before a comment, which needs a blank in front of its sign.
std::string_view without_comment(std::string_view text) {
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (is_comment(text[i]) && is_blank(text[i - 1])) {
      return text.substr(0, i);
    }
  }
  return text;
}

/// "profile   "my dev"" as "profile my dev".
std::string heading(std::string_view text) {
  std::string out;
  bool quoted = false;
  for (const char c : text) {
    if (c == '"' || c == '\'') {
      quoted = !quoted;
    } else if (is_blank(c) && !quoted) {
      if (!out.empty() && out.back() != ' ') {
        out += ' ';
      }
    } else {
      out += c;
    }
  }
  return std::string(trim(out));
}

/// Takes a file line by line. A value; used once.
class Reader {
 public:
  explicit Reader(const std::string& name) : name_(name) {}

  std::optional<Error> add(std::string_view line) {
    ++number_;
    const std::string_view content = trim(line);
    if (content.empty() || is_comment(content.front())) {
      return std::nullopt;
    }
    if (is_blank(line.front())) {
      return continue_property(content);
    }
    return content.front() == '[' ? open_section(content) : open_property(content);
  }
  IniFile take() { return std::move(file_); }

 private:
  std::optional<Error> open_section(std::string_view content) {
    const auto end = content.find(']');
    if (end == std::string_view::npos) {
      return failure("the section's heading has no ']'");
    }
    const std::string_view rest = trim(content.substr(end + 1));
    if (!rest.empty() && !is_comment(rest.front())) {
      return failure("there is text behind the section's heading");
    }
    const std::string title = heading(content.substr(1, end - 1));
    if (title.empty()) {
      return failure("the section's heading is empty");
    }
    section_ = &file_[title];
    property_.clear();
    return std::nullopt;
  }

  std::optional<Error> open_property(std::string_view content) {
    if (section_ == nullptr) {
      return failure("this line stands before the first [section]");
    }
    const auto equals = content.find('=');
    if (equals == std::string_view::npos || trim(content.substr(0, equals)).empty()) {
      return failure("this line is not of the form name = value");
    }
    property_ = lower_case(trim(content.substr(0, equals)));
    (*section_)[property_] = trim(without_comment(content.substr(equals + 1)));
    return std::nullopt;
  }

  std::optional<Error> continue_property(std::string_view content) {
    if (section_ == nullptr || property_.empty()) {
      return failure("this line is indented, but there is no property above it to belong to");
    }
    std::string& value = (*section_)[property_];
    const auto equals = content.find('=');
    if (!value.empty()) {
      value += '\n';
      value += trim(without_comment(content));
    } else if (equals == std::string_view::npos || trim(content.substr(0, equals)).empty()) {
      return failure("this line is not of the form name = value");
    } else {
      (*section_)[property_ + "." + lower_case(trim(content.substr(0, equals)))] =
          trim(without_comment(content.substr(equals + 1)));
    }
    return std::nullopt;
  }

  Error failure(const std::string& what) const {
    return {ErrorKind::no_credentials, name_ + ":" + std::to_string(number_) + ": " + what};
  }

  const std::string& name_;
  IniFile file_;
  IniSection* section_ = nullptr;
  std::string property_;
  int number_ = 0;
};

constexpr std::string_view kDefault = "default";

std::filesystem::path path_of(const AwsEnvironment& environment, const char* variable, const char* in_home) {
  if (const auto named = environment.get(variable)) {
    return environment.expand(*named);
  }
  return environment.home().empty() ? std::filesystem::path() : environment.home() / ".aws" / in_home;
}

Result<std::string> text_of(const std::filesystem::path& path) {
  if (path.empty()) {
    return std::string();
  }
  SLUICE_TRY(text, read_file(path));
  return std::move(*text).value_or("");
}

const IniSection& section_in_use(const AwsEnvironment& environment, const Profiles& profiles) {
  static const IniSection kEmpty;
  const IniSection* section = profiles.profile(active_profile(environment).name);
  return section == nullptr ? kEmpty : *section;
}

/// What the environment says, or else the profile, in small letters: one of these words; `fallback` where neither
/// says anything.
Result<std::string> word(const AwsEnvironment& environment, const Profiles& profiles, const std::string& variable,
                         const std::string& key, std::vector<std::string_view> words, std::string_view fallback) {
  auto said = environment.get(variable);
  const std::string place = said ? variable : key + " of profile " + active_profile(environment).name;
  said = said ? std::move(said) : property(section_in_use(environment, profiles), key);
  std::string known = said ? lower_case(*said) : std::string(fallback);
  if (!contains(words, known)) {
    const std::string last(words.back());
    words.pop_back();
    return Error(ErrorKind::validation,
                 place + " must be " + joined(words) + " or " + last + ", not \"" + *said + "\"");
  }
  return known;
}

}  // namespace

AwsEnvironment AwsEnvironment::of_process() {
  const auto lookup = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
  return {lookup, lookup("HOME").value_or("")};
}

std::optional<std::string> AwsEnvironment::get(const std::string& name) const {
  auto value = lookup_(name);
  return value && !value->empty() ? std::move(value) : std::nullopt;
}

bool AwsEnvironment::is_true(const std::string& name) const { return lower_case(get(name).value_or("")) == "true"; }

std::filesystem::path AwsEnvironment::expand(const std::string& path) const {
  if (path == "~") {
    return home_;
  }
  return path.starts_with("~/") ? home_ / path.substr(2) : std::filesystem::path(path);
}

Result<std::optional<std::string>> read_file(const std::filesystem::path& path) {
  std::error_code failure;
  const auto status = std::filesystem::status(path, failure);
  if (status.type() == std::filesystem::file_type::not_found) {
    return std::optional<std::string>();
  }
  const auto unreadable = [&](const std::string& why) {
    return no_credentials(path.string() + ": cannot be read: " + why);
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

Result<IniFile> parse_ini(std::string_view text, const std::string& name) {
  if (text.starts_with("\xEF\xBB\xBF")) {
    text.remove_prefix(3);
  }
  Reader reader(name);
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    if (auto failure = reader.add(text.substr(0, end))) {
      return std::move(*failure);
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return reader.take();
}

Result<Profiles> Profiles::load(const AwsEnvironment& environment) {
  const auto config_path = path_of(environment, "AWS_CONFIG_FILE", "config");
  const auto credentials_path = path_of(environment, "AWS_SHARED_CREDENTIALS_FILE", "credentials");
  SLUICE_TRY(config, text_of(config_path));
  SLUICE_TRY(credentials, text_of(credentials_path));
  return parse(*config, *credentials, config_path.string(), credentials_path.string());
}

Result<Profiles> Profiles::parse(std::string_view config, std::string_view credentials, const std::string& config_name,
                                 const std::string& credentials_name) {
  SLUICE_TRY(config_file, parse_ini(config, config_name));
  SLUICE_TRY(credentials_file, parse_ini(credentials, credentials_name));
  Profiles out;
  for (const auto& [heading, section] : *config_file) {
    const auto blank = heading.find(' ');
    const std::string kind = heading.substr(0, blank);
    const std::string name = blank == std::string::npos ? "" : heading.substr(blank + 1);
    if (heading == kDefault && !config_file->contains("profile default")) {
      out.profiles_[heading] = section;
    } else if (kind == "profile" && !name.empty()) {
      out.profiles_[name] = section;
    } else if (kind == "sso-session" && !name.empty()) {
      out.sso_sessions_[name] = section;
    } else if (kind == "services" && !name.empty()) {
      out.services_[name] = section;
    }
  }
  for (const auto& [heading, section] : *credentials_file) {
    IniSection& profile = out.profiles_[heading];  // also where the section is empty
    for (const auto& [name, value] : section) {
      profile[name] = value;
    }
  }
  return out;
}

const IniSection* Profiles::lookup(const Sections& sections, std::string_view name) {
  const auto found = sections.find(name);
  return found == sections.end() ? nullptr : &found->second;
}

ActiveProfile active_profile(const AwsEnvironment& environment) {
  for (const char* variable : {"AWS_PROFILE", "AWS_DEFAULT_PROFILE"}) {
    if (auto name = environment.get(variable)) {
      return {std::move(*name), true};
    }
  }
  return {std::string(kDefault), false};
}

std::optional<std::string> property(const IniSection& section, std::string_view name) {
  const auto found = section.find(name);
  return found == section.end() || found->second.empty() ? std::nullopt : std::optional(found->second);
}

Result<EndpointSettings> resolve_settings(const AwsEnvironment& environment) {
  SLUICE_TRY(profiles, Profiles::load(environment));
  return resolve_settings(environment, *profiles);
}

Result<EndpointSettings> resolve_settings(const AwsEnvironment& environment, const Profiles& profiles) {
  const ActiveProfile active = active_profile(environment);
  if (active.named && profiles.profile(active.name) == nullptr) {
    return Error(ErrorKind::validation,
                 "AWS_PROFILE names " + active.name + ", which is in neither the AWS config nor the credentials file");
  }
  EndpointSettings out;
  out.region = resolve_region(environment, profiles).value_or("");
  out.endpoint = configured_endpoint(environment, profiles, "dynamodb").value_or("");
  SLUICE_TRY(fips,
             word(environment, profiles, "AWS_USE_FIPS_ENDPOINT", "use_fips_endpoint", {"true", "false"}, "false"));
  SLUICE_TRY(dual, word(environment, profiles, "AWS_USE_DUALSTACK_ENDPOINT", "use_dualstack_endpoint",
                        {"true", "false"}, "false"));
  SLUICE_TRY(mode, word(environment, profiles, "AWS_ACCOUNT_ID_ENDPOINT_MODE", "account_id_endpoint_mode",
                        {"preferred", "disabled", "required"}, "preferred"));
  out.use_fips = *fips == "true";
  out.use_dual_stack = *dual == "true";
  out.account_id_endpoint_mode = std::move(*mode);
  return out;
}

std::optional<std::string> resolve_region(const AwsEnvironment& environment, const Profiles& profiles) {
  for (const char* variable : {"AWS_REGION", "AWS_DEFAULT_REGION"}) {
    if (auto region = environment.get(variable)) {
      return region;
    }
  }
  return property(section_in_use(environment, profiles), "region");
}

std::optional<std::string> configured_endpoint(const AwsEnvironment& environment, const Profiles& profiles,
                                               const std::string& service) {
  const IniSection& section = section_in_use(environment, profiles);
  if (environment.is_true("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS") ||
      lower_case(property(section, "ignore_configured_endpoint_urls").value_or("")) == "true") {
    return std::nullopt;
  }
  for (const std::string& variable :
       {"AWS_ENDPOINT_URL_" + boost::to_upper_copy(service, std::locale::classic()), std::string("AWS_ENDPOINT_URL")}) {
    if (auto url = environment.get(variable)) {
      return url;
    }
  }
  const IniSection* of_services = profiles.services(property(section, "services").value_or(""));
  auto url = of_services == nullptr ? std::nullopt : property(*of_services, service + ".endpoint_url");
  return url ? url : property(section, "endpoint_url");
}

}  // namespace sluice::dynamo
