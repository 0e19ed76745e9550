#include "dynamo/credentials/profiles.hpp"

#include "dynamo/credentials/text.hpp"

namespace sluice::dynamo {
namespace {

constexpr std::string_view kDefault = "default";

void merge(IniSection& into, const IniSection& from) {
  for (const auto& [name, value] : from) {
    into[name] = value;
  }
}

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
  auto text = read_file(path);
  if (!text) {
    return text.error();
  }
  return std::move(*text).value_or("");
}

}  // namespace

Result<Profiles> Profiles::load(const AwsEnvironment& environment) {
  const auto config_path = path_of(environment, "AWS_CONFIG_FILE", "config");
  const auto credentials_path = path_of(environment, "AWS_SHARED_CREDENTIALS_FILE", "credentials");
  const auto config = text_of(config_path);
  if (!config) {
    return config.error();
  }
  const auto credentials = text_of(credentials_path);
  if (!credentials) {
    return credentials.error();
  }
  return parse(*config, *credentials, config_path.string(), credentials_path.string());
}

Result<Profiles> Profiles::parse(std::string_view config, std::string_view credentials, const std::string& config_name,
                                 const std::string& credentials_name) {
  const auto config_file = parse_ini(config, config_name);
  if (!config_file) {
    return config_file.error();
  }
  const auto credentials_file = parse_ini(credentials, credentials_name);
  if (!credentials_file) {
    return credentials_file.error();
  }
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
    merge(out.profiles_[heading], section);
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

}  // namespace sluice::dynamo
