#include "host/stores/outbox/mysql/errors.hpp"

#include <algorithm>
#include <array>

namespace sluice::queue::outbox::mysql {

namespace {

struct Known {
  unsigned int code;
  ErrorCode kind;
  const char* what;
};

// By the numbers of the servers (1000 and up, 3000 of MySQL 5.7 and 8, 4000 of both) and of the client (2000).
constexpr std::array<Known, 37> kKnown{{
    {1021, ErrorCode::full, "the server's disk is full"},
    {1040, ErrorCode::unavailable, "the server has no connection left"},
    {1044, ErrorCode::denied, "the user has no right to this database"},
    {1045, ErrorCode::denied, "the server refuses the user or the password"},
    {1049, ErrorCode::queue_missing, "there is no such database"},
    {1053, ErrorCode::unavailable, "the server is shutting down"},
    {1054, ErrorCode::invalid, "a column is missing; its name can be given in [outbox.NAME.columns]"},
    {1114, ErrorCode::full, "the table is full"},
    {1129, ErrorCode::unavailable,
     "the server blocks this machine after too many failures; FLUSH HOSTS there ends that"},
    {1130, ErrorCode::denied, "the server takes no connections from this machine"},
    {1142, ErrorCode::denied, "the user lacks a right to the table; it needs SELECT and UPDATE"},
    {1143, ErrorCode::denied, "the user lacks a right to a column; it needs SELECT and UPDATE"},
    {1146, ErrorCode::queue_missing, "there is no such table; `sluice outbox ddl` prints what makes it"},
    {1153, ErrorCode::invalid, "a value is larger than the server's max_allowed_packet"},
    {1203, ErrorCode::unavailable, "the user has no connection left"},
    {1205, ErrorCode::throttled, "somebody else holds a lock on the rows for too long"},
    {1213, ErrorCode::throttled, "a deadlock with another transaction"},
    {1226, ErrorCode::unavailable, "the user's limit of connections or queries is reached"},
    {1227, ErrorCode::denied, "the user lacks a right"},
    {1290, ErrorCode::unavailable, "the server is read-only, as a replica is; name the one that is written to"},
    {1317, ErrorCode::throttled, "the query was ended by somebody at the server"},
    {1366, ErrorCode::invalid, "a value does not fit its column"},
    {1644, ErrorCode::conflict, "a trigger of the table refuses the change"},
    {1698, ErrorCode::denied, "the server refuses the user"},
    {1792, ErrorCode::unavailable, "the server is read-only, as a replica is; name the one that is written to"},
    {1836, ErrorCode::unavailable, "the server is read-only, as a replica is; name the one that is written to"},
    {1927, ErrorCode::unavailable, "somebody at the server ended the session"},
    {1969, ErrorCode::throttled, "the query took longer than the server allows"},
    {2002, ErrorCode::unavailable, "nobody answers"},
    {2003, ErrorCode::unavailable, "nobody answers"},
    {2005, ErrorCode::unavailable, "the name of the server is not known"},
    {2006, ErrorCode::unavailable, "the session has ended"},
    {2013, ErrorCode::unavailable, "the session has ended"},
    {2026, ErrorCode::denied, "no TLS session with the server"},
    {2055, ErrorCode::unavailable, "the session has ended"},
    {2059, ErrorCode::denied, "the user logs in by a way that this machine's libmariadb lacks"},
    {4031, ErrorCode::unavailable, "the server ended the idle session"},
}};

}  // namespace

Error error_of(const Fault& fault, const std::string& place) {
  const auto* known =
      std::find_if(kKnown.begin(), kKnown.end(), [&fault](const Known& one) { return one.code == fault.code; });
  const std::string said = " (" + std::to_string(fault.code) + ": " + fault.text + ")";
  if (known == kKnown.end()) {
    return {ErrorCode::internal, place + ": the server refuses a request" + said};
  }
  return {known->kind, place + ": " + known->what + said};
}

bool ends_session(const Fault& fault) {
  constexpr std::array<unsigned int, 6> kEnds{1053, 1927, 2006, 2013, 2055, 4031};
  return std::find(kEnds.begin(), kEnds.end(), fault.code) != kEnds.end();
}

bool may_be_tried_again(const Fault& fault) { return fault.code == 1205 || fault.code == 1213; }

}  // namespace sluice::queue::outbox::mysql
