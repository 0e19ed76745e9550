#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "dynamo/credentials/aws_environment.hpp"
#include "dynamo/credentials/ini_file.hpp"

namespace sluice::dynamo {

/// The user's profiles, from the shared config and credentials files together. A value.
class Profiles {
 public:
  /// Reads ~/.aws/config and ~/.aws/credentials, or what AWS_CONFIG_FILE and AWS_SHARED_CREDENTIALS_FILE name. Files
  /// that are not there count as empty; ErrorKind::no_credentials for one that cannot be read or understood.
  static Result<Profiles> load(const AwsEnvironment& environment);
  /// The same from texts; the names are for messages.
  static Result<Profiles> parse(std::string_view config, std::string_view credentials,
                                const std::string& config_name = "config",
                                const std::string& credentials_name = "credentials");

  /// Null when there is none of that name. Where both files have a property, the credentials file wins.
  const IniSection* profile(std::string_view name) const { return lookup(profiles_, name); }
  const IniSection* sso_session(std::string_view name) const { return lookup(sso_sessions_, name); }
  const IniSection* services(std::string_view name) const { return lookup(services_, name); }

 private:
  using Sections = std::map<std::string, IniSection, std::less<>>;
  static const IniSection* lookup(const Sections& sections, std::string_view name);

  Sections profiles_;
  Sections sso_sessions_;
  Sections services_;
};

/// The profile in use: AWS_PROFILE, else "default". `named` tells whether the user asked for it.
struct ActiveProfile {
  std::string name;
  bool named = false;
};
ActiveProfile active_profile(const AwsEnvironment& environment);

/// A property's value, or nothing when it is absent or empty.
std::optional<std::string> property(const IniSection& section, std::string_view name);

}  // namespace sluice::dynamo
