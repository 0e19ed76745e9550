#include "host/stores/outbox/postgres/errors.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace sluice::queue::outbox::postgres {
namespace {

struct Meaning {
  std::string_view state;  ///< the whole code, or the class that it begins with
  ErrorCode code;
  const char* mend;
};

// The first that fits.
constexpr std::array kMeanings{
    Meaning{"28", ErrorCode::denied, "check the user and the password"},
    Meaning{"3D000", ErrorCode::queue_missing, "name the database in the url, or create it"},
    Meaning{"3F000", ErrorCode::queue_missing, "check 'schema'"},
    Meaning{"42P01", ErrorCode::queue_missing,
            "check 'schema' and 'table', or make it with what `sluice outbox ddl` prints"},
    Meaning{"42703", ErrorCode::invalid, "name the column in [outbox.NAME.columns], or add it"},
    Meaning{"42501", ErrorCode::denied, "grant SELECT and UPDATE on the table to the user"},
    Meaning{"42883", ErrorCode::invalid,
            "a column has another type than an outbox needs; `sluice outbox status` names it"},
    Meaning{"42804", ErrorCode::invalid,
            "a column has another type than an outbox needs; `sluice outbox status` names it"},
    Meaning{"42", ErrorCode::invalid, ""},
    Meaning{"25006", ErrorCode::unavailable,
            "the server is a read-only replica: name the primary in the url, or add ?target_session_attrs=read-write"},
    Meaning{"40001", ErrorCode::throttled, "it is tried again"},
    Meaning{"40P01", ErrorCode::throttled, "a deadlock with another transaction; it is tried again"},
    Meaning{"55P03", ErrorCode::throttled, "another transaction holds a lock; it is tried again"},
    Meaning{"57014", ErrorCode::throttled, "the statement took too long; it is tried again"},
    Meaning{"57P05", ErrorCode::unavailable, "this host was silent for longer than its lease"},
    Meaning{"57", ErrorCode::unavailable, "it is tried again"},
    Meaning{"53100", ErrorCode::full, "the server's disk is full"},
    Meaning{"53", ErrorCode::unavailable, "it is tried again"},
    Meaning{"58", ErrorCode::unavailable, "it is tried again"},
    Meaning{"08", ErrorCode::unavailable, "it is tried again"},
    Meaning{"22", ErrorCode::invalid, ""},
    Meaning{"23", ErrorCode::conflict, ""},
    Meaning{"P0", ErrorCode::conflict, "a trigger of the table refuses it"},
};

// What libpq says when it cannot connect; it gives no code.
constexpr std::array kConnectMeanings{
    Meaning{"password authentication failed", ErrorCode::denied, "check the user and the password"},
    Meaning{"no password supplied", ErrorCode::denied, "give a password in the url or as 'password'"},
    Meaning{"no pg_hba.conf entry", ErrorCode::denied, "the server lets nobody in from here"},
    Meaning{"authentication failed", ErrorCode::denied, "check the user and the password"},
    Meaning{"certificate verify failed", ErrorCode::denied, "check 'ca' in [outbox.NAME.tls]"},
    Meaning{"does not match host name", ErrorCode::denied, "check 'server_name' in [outbox.NAME.tls]"},
    Meaning{"root certificate file", ErrorCode::denied, "give 'ca' in [outbox.NAME.tls]"},
    Meaning{"could not load", ErrorCode::denied, "check the files in [outbox.NAME.tls]"},
    Meaning{"could not read certificate", ErrorCode::denied, "check the files in [outbox.NAME.tls]"},
    Meaning{"server does not support SSL", ErrorCode::denied, "take [outbox.NAME.tls] away, or turn TLS on there"},
    Meaning{"certificate", ErrorCode::denied, "check [outbox.NAME.tls]"},
    Meaning{"role \"", ErrorCode::denied, "check the user"},
    Meaning{"permission denied for database", ErrorCode::denied, "grant CONNECT to the user"},
    Meaning{"database \"", ErrorCode::queue_missing, "check the database in the url"},
};

void replace_all(std::string& text, const std::string& what, const std::string& by) {
  for (std::size_t at = what.empty() ? std::string::npos : text.find(what); at != std::string::npos;
       at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
}

std::string one_line(std::string text) {
  for (const char* prefix : {"FATAL:  ", "ERROR:  "}) {
    replace_all(text, prefix, "");
  }
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) {
    text.pop_back();
  }
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

/// Without the URL, the password, and what may be a piece of them.
std::string without_secrets(std::string text, const ConnectionInfo& info) {
  const std::string& url = info.front().second;
  replace_all(text, url, "the url");
  for (const auto& [key, value] : info) {
    replace_all(text, key == "password" ? value : "", "...");
  }
  // Where nobody can tell what belongs to a password, libpq may show a piece of it for something else.
  const bool clear = url.find("://") != std::string::npos && url.find('@') == std::string::npos &&
                     url.find("password") == std::string::npos;
  for (std::size_t at = clear ? std::string::npos : text.find('"'); at != std::string::npos; at = text.find('"', at)) {
    const std::size_t end = std::min(text.find('"', at + 1), text.size());
    text.replace(at, end + 1 - at, "(not shown)");
  }
  return text;
}

}  // namespace

Error statement_error(std::string_view sqlstate, std::string text) {
  text = one_line(std::move(text));
  const auto meaning = std::find_if(kMeanings.begin(), kMeanings.end(),
                                    [&](const Meaning& one) { return sqlstate.starts_with(one.state); });
  if (meaning == kMeanings.end()) {
    return {sqlstate.empty() ? ErrorCode::unavailable : ErrorCode::internal,
            text + (sqlstate.empty() ? "" : " (SQLSTATE " + std::string(sqlstate) + ")")};
  }
  const std::string mend = meaning->mend;
  return {meaning->code, text + " (SQLSTATE " + std::string(sqlstate) + ")" + (mend.empty() ? "" : "; " + mend)};
}

Error connect_error(const std::string& text, const ConnectionInfo& info) {
  std::string shown = one_line(without_secrets(text, info));
  const auto meaning = std::find_if(kConnectMeanings.begin(), kConnectMeanings.end(),
                                    [&](const Meaning& one) { return text.find(one.state) != std::string::npos; });
  if (meaning == kConnectMeanings.end()) {
    return {ErrorCode::unavailable, shown.empty() ? "the server cannot be reached" : std::move(shown)};
  }
  return {meaning->code, shown + "; " + meaning->mend};
}

}  // namespace sluice::queue::outbox::postgres
