#include "host/stores/outbox/mysql/url.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "base/text/percent.hpp"

namespace sluice::queue::outbox::mysql {

namespace {

constexpr std::string_view kScheme = "mysql://";
constexpr const char* kForms =
    "must be mysql://USER:PASSWORD@HOST:3306/DATABASE or USER:PASSWORD@tcp(HOST:3306)/DATABASE (the value is not "
    "shown, "
    "for it may hold a password)";

Error wrong(const std::string& what) { return {ErrorCode::invalid, "the outbox's url " + what}; }

bool read_port(std::string_view text, std::uint32_t& port) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), port);
  return code == std::errc() && end == text.data() + text.size() && port > 0 && port <= 65535;
}

/// "host", "host:port" or "[address]:port".
bool read_host(std::string_view text, ServerAddress& address) {
  if (text.empty()) {
    return true;
  }
  std::size_t end = text.find(':');
  if (text.front() == '[') {
    const std::size_t bracket = text.find(']');
    if (bracket == std::string_view::npos) {
      return false;
    }
    address.host = std::string(text.substr(1, bracket - 1));
    end = bracket + 1;
  } else {
    address.host = std::string(text.substr(0, end));
  }
  if (address.host.empty()) {
    return false;
  }
  return end >= text.size() || (text[end] == ':' && read_port(text.substr(end + 1), address.port));
}

/// "tcp(host:port)", "unix(path)", or nothing for the default; "mysql+tcp" was outbox-worker's name for its tunnel.
bool read_go_place(std::string_view text, ServerAddress& address) {
  const std::size_t open = text.find('(');
  if (open == std::string_view::npos) {
    return text.empty() || text == "tcp";
  }
  if (text.back() != ')') {
    return false;
  }
  const std::string_view kind = text.substr(0, open);
  const std::string_view inside = text.substr(open + 1, text.size() - open - 2);
  if (kind == "unix") {
    address.socket = std::string(inside);
    return !inside.empty();
  }
  return (kind == "tcp" || kind == "tcp6" || kind == "mysql+tcp") && read_host(inside, address);
}

Result<void> read_parameters(std::string_view text, ServerAddress& address) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('&'), text.size());
    const std::string_view parameter = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), end + 1));
    if (parameter.substr(0, 4) != "tls=") {
      continue;
    }
    const std::string_view value = parameter.substr(4);
    if (value == "true") {
      address.tls = TlsUse::checked;
    } else if (value == "skip-verify") {
      address.tls = TlsUse::unchecked;
    } else if (value == "preferred") {
      address.tls = TlsUse::preferred;
    } else if (value != "false") {
      return wrong("has a 'tls' other than true, false, skip-verify or preferred; write [outbox.NAME.tls]");
    }
  }
  return {};
}

void read_user(std::string_view text, ServerAddress& address) {
  const std::size_t colon = text.find(':');
  address.user = std::string(text.substr(0, colon));
  address.password = colon == std::string_view::npos ? "" : std::string(text.substr(colon + 1));
}

/// As Go's driver: the last '/' ends the place, and the last '@' before it the user.
bool read_go_form(std::string_view text, ServerAddress& address, std::string_view& parameters) {
  const std::size_t slash = text.rfind('/');
  if (slash == std::string_view::npos) {
    return false;
  }
  const std::string_view right = text.substr(slash + 1);
  const std::size_t question = std::min(right.find('?'), right.size());
  const auto database = percent_decoded(right.substr(0, question));
  parameters = right.substr(std::min(right.size(), question + 1));
  std::string_view place = text.substr(0, slash);
  if (const std::size_t at = place.rfind('@'); at != std::string_view::npos) {
    read_user(place.substr(0, at), address);
    place.remove_prefix(at + 1);
  }
  address.database = database.value_or(std::string());
  return database && read_go_place(place, address);
}

bool read_url_form(std::string_view text, ServerAddress& address, std::string_view& parameters) {
  const std::size_t question = std::min(text.find('?'), text.size());
  parameters = text.substr(std::min(text.size(), question + 1));
  text = text.substr(0, question);
  // A password may hold a '/', where nobody has written %2F.
  const std::size_t at = text.rfind('@');
  const std::string_view rest = at == std::string_view::npos ? text : text.substr(at + 1);
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  if (at != std::string_view::npos) {
    read_user(text.substr(0, at), address);
  } else if (parameters.find('@') != std::string_view::npos) {
    return false;  // the '?' is one of a password, and all before it may be
  }
  const auto user = percent_decoded(address.user);
  const auto password = percent_decoded(address.password);
  const auto database = percent_decoded(rest.substr(std::min(rest.size(), slash + 1)));
  if (!user || !password || !database) {
    return false;
  }
  address.user = *user;
  address.password = *password;
  address.database = *database;
  return read_host(rest.substr(0, slash), address);
}

/// True where what follows the user is "tcp(", "unix(" and the like.
bool is_go_form(std::string_view text) {
  const std::size_t slash = text.rfind('/');
  const std::string_view left = text.substr(0, slash);
  const std::size_t at = left.rfind('@');
  const std::string_view place = at == std::string_view::npos ? left : left.substr(at + 1);
  return place.find('(') != std::string_view::npos && !place.empty() && place.back() == ')';
}

}  // namespace

std::string ServerAddress::place() const {
  return "mysql://" + (socket.empty() ? host + ":" + std::to_string(port) : "unix(" + socket + ")") + "/" + database;
}

Result<ServerAddress> parse_url(const std::string& url) {
  std::string_view text = url;
  const bool scheme = text.substr(0, kScheme.size()) == kScheme;
  text.remove_prefix(scheme ? kScheme.size() : 0);
  ServerAddress address;
  std::string_view parameters;
  const bool go = is_go_form(text);
  const bool good = go ? read_go_form(text, address, parameters) : scheme && read_url_form(text, address, parameters);
  if (!good) {
    return wrong(kForms);
  }
  SLUICE_PASS_ON(read_parameters(parameters, address));
  if (address.database.empty()) {
    return wrong("names no database: write it behind the '/' that follows the host");
  }
  return address;
}

Result<ServerAddress> address_of(const ConnectSettings& settings) {
  auto address = parse_url(settings.url);
  if (address.has_error()) {
    return address;
  }
  if (!settings.username.empty()) {
    address->user = settings.username;
  }
  if (!settings.password.empty()) {
    address->password = settings.password;
  }
  if (settings.tls.required) {
    address->tls = settings.tls.verify ? TlsUse::checked : TlsUse::unchecked;
  }
  return address;
}

}  // namespace sluice::queue::outbox::mysql
