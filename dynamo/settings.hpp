#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "dynamo/endpoints/endpoint_rules.hpp"
#include "dynamo/error.hpp"
#include "dynamo/text.hpp"

namespace sluice::dynamo {

/// What AWS's tools read from around a process: its environment variables and the user's home folder. A value, injected
/// so that tests never touch the real ones.
class AwsEnvironment {
 public:
  using Lookup = std::function<std::optional<std::string>(const std::string&)>;

  /// `lookup` must be thread-safe. An empty `home` means that there is none.
  AwsEnvironment(Lookup lookup, std::filesystem::path home) : lookup_(std::move(lookup)), home_(std::move(home)) {}

  /// This process's environment and $HOME.
  static AwsEnvironment of_process();

  /// The variable's text; nothing when it is not set or empty, which AWS treats alike.
  std::optional<std::string> get(const std::string& name) const;
  /// True for "true" in any case.
  bool is_true(const std::string& name) const;
  const std::filesystem::path& home() const { return home_; }
  /// `path` with a leading "~" as the home folder.
  std::filesystem::path expand(const std::string& path) const;

 private:
  Lookup lookup_;
  std::filesystem::path home_;
};

/// Files and answers that hold credentials are small; anything larger is not one of them.
inline constexpr std::size_t kMaxCredentialFileBytes = 1024 * 1024;

/// A whole file. Nothing when there is no such file; an Error (no_credentials) when it cannot be read or is too large.
Result<std::optional<std::string>> read_file(const std::filesystem::path& path);

/// One section's properties: names in lower case to values. A nested property ("dynamodb =" followed by an indented
/// "endpoint_url = ...") is found under "dynamodb.endpoint_url".
using IniSection = std::map<std::string, std::string, std::less<>>;
/// Sections by their headings, blanks squeezed and quotes removed: "default", "profile dev", "sso-session corp".
using IniFile = std::map<std::string, IniSection, std::less<>>;

/// Reads AWS's dialect of INI. Comments are lines that begin with '#' or ';', and what follows such a sign after a
/// blank; an indented line continues the value above it, or is a property of its own below an empty value; a section or
/// property that comes twice is merged, the later one wins. ErrorKind::no_credentials with "name:line: ..." for a line
/// that is none of these. `name` is the file's, for messages; values never appear in them. Pure.
Result<IniFile> parse_ini(std::string_view text, const std::string& name);

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

/// What AWS's usual places say about a client, besides credentials. The environment wins over the profile.
/// ErrorKind::no_credentials for files that cannot be read, ErrorKind::validation for a profile or value that does not
/// exist. Read once, at start.
Result<EndpointSettings> resolve_settings(const AwsEnvironment& environment);
Result<EndpointSettings> resolve_settings(const AwsEnvironment& environment, const Profiles& profiles);

/// AWS_REGION, AWS_DEFAULT_REGION, then the profile's region. Nothing when none is named.
std::optional<std::string> resolve_region(const AwsEnvironment& environment, const Profiles& profiles);

/// The endpoint that is configured for a service, such as "dynamodb" or "sts": AWS_ENDPOINT_URL_<SERVICE>,
/// AWS_ENDPOINT_URL, the profile's services section, its endpoint_url.
std::optional<std::string> configured_endpoint(const AwsEnvironment& environment, const Profiles& profiles,
                                               const std::string& service);

}  // namespace sluice::dynamo
