#include "settings.hpp"

#include <algorithm>
#include <cstdio>

#include "publishing/routes.hpp"
#include "publishing/text.hpp"

namespace {

using publishing::refuse;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""h;

constexpr std::size_t kMaxNameLength = 256;

std::string plain(const sluice::Options& options, const char* name) {
  auto value = options.get(name, "");
  if (publishing::has_control(value)) {
    refuse(name, "has a control character in it");
  }
  return value;
}

std::string readable_file(const sluice::Options& options, const char* name) {
  auto file = plain(options, name);
  if (options.has(name)) {
    std::FILE* opened = std::fopen(file.c_str(), "re");
    if (opened == nullptr) {
      refuse(name, "names \"" + file + "\", which cannot be read");
    }
    std::fclose(opened);
  }
  return file;
}

std::vector<std::string> servers_option(const sluice::Options& options) {
  auto servers = options.list("servers");
  if (servers.empty()) {
    refuse("servers", "is empty; name one, such as \"nats://127.0.0.1:4222\"");
  }
  for (const std::string& server : servers) {
    const bool known = server.starts_with("nats://") || server.starts_with("tls://");
    // What may hold a password is not repeated.
    if (!known || publishing::has_control(server) || server.find(' ') != std::string::npos) {
      refuse("servers", "must hold addresses such as \"nats://127.0.0.1:4222\" or \"tls://nats.example.com:4222\"");
    }
  }
  return servers;
}

bool is_header_name(const std::string& text) {
  return !text.empty() && text.size() <= kMaxNameLength && std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) > 0x20 && static_cast<unsigned char>(c) < 0x7f && c != ':';
  });
}

std::vector<std::string> attributes_option(const sluice::Options& options) {
  auto names = options.list("attributes");
  for (const std::string& name : names) {
    if (!is_header_name(name) || name.starts_with("Nats-")) {
      refuse("attributes", "has \"" + publishing::one_line(name) +
                               "\", which cannot be the name of a header; letters, digits and '-' can");
    }
  }
  return names;
}

void read_identity(const sluice::Options& options, Settings& settings) {
  settings.username = plain(options, "username");
  settings.password = options.get("password", "");
  settings.token = options.get("token", "");
  settings.credentials_file = readable_file(options, "credentials_file");
  settings.seed_file = readable_file(options, "seed_file");
  const int ways =
      (options.has("username") ? 1 : 0) + (options.has("token") ? 1 : 0) + (options.has("credentials_file") ? 1 : 0);
  if (ways > 1) {
    refuse("username", "and \"token\" and \"credentials_file\" exclude each other; set one of them");
  }
  if (options.has("password") && !options.has("username")) {
    refuse("password", "needs \"username\" beside it");
  }
  if (options.has("seed_file") && !options.has("credentials_file")) {
    refuse("seed_file", "needs \"credentials_file\" beside it, with the JWT");
  }
}

void read_tls(const sluice::Options& options, Settings& settings) {
  settings.ca_file = readable_file(options, "ca_file");
  settings.server_name = plain(options, "server_name");
  settings.certificate_file = readable_file(options, "certificate_file");
  settings.key_file = readable_file(options, "key_file");
  settings.tls_verify = options.get<bool>("tls_verify");
  if (options.has("certificate_file") != options.has("key_file")) {
    refuse("certificate_file", "and \"key_file\" belong together; set both");
  }
  const bool implied = options.has("ca_file") || options.has("certificate_file") || options.has("server_name") ||
                       std::any_of(settings.servers.begin(), settings.servers.end(),
                                   [](const std::string& server) { return server.starts_with("tls://"); });
  settings.tls = options.get<bool>("tls") || implied;
  if (!settings.tls_verify && !settings.tls) {
    refuse("tls_verify", "has no meaning without TLS; set \"tls\" as well");
  }
}

}  // namespace

Settings Settings::read(const sluice::Options& options, std::string_view job) {
  Settings settings;
  settings.servers = servers_option(options);
  settings.name = options.has("name") ? plain(options, "name") : "sluice-" + std::string(job);
  settings.domain = plain(options, "domain");
  settings.stream = plain(options, "stream");
  settings.append_id = options.get<bool>("append_id");
  settings.encode_subjects = publishing::one_of(options, "bad_subject", {"reject", "encode"}) == "encode";
  const auto id = publishing::one_of(options, "message_id", {"row", "payload", "none"});
  settings.message_id = id == "row" ? MessageId::row : id == "payload" ? MessageId::payload : MessageId::none;
  settings.attributes = attributes_option(options);
  settings.snooze_outages = publishing::one_of(options, "outage", {"retry", "snooze"}) == "snooze";
  settings.timeout = publishing::bounded(options, "timeout", 1ms, 1h);
  settings.connect_timeout = publishing::bounded(options, "connect_timeout", 1ms, 1h);
  settings.reconnect_wait = publishing::bounded(options, "reconnect_wait", 1ms, 1h);
  settings.reconnect_jitter = publishing::bounded(options, "reconnect_jitter", 0ms, 1h);
  settings.reconnect_jitter_tls = publishing::bounded(options, "reconnect_jitter_tls", 0ms, 1h);
  settings.no_stream_wait = publishing::bounded(options, "no_stream_wait", 0ms, 1h);
  read_identity(options, settings);
  read_tls(options, settings);
  return settings;
}
