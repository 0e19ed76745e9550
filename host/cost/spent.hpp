#pragma once

#include <cstdint>

namespace sluice::cost {

/// What was spent at DynamoDB, as its answers reported it. A value. Requests are shares where several messages had one.
struct Spent {
  double requests = 0;
  double read_units = 0;
  double write_units = 0;

  bool none() const { return requests == 0 && read_units == 0 && write_units == 0; }
  Spent& operator+=(const Spent& other) {
    requests += other.requests;
    read_units += other.read_units;
    write_units += other.write_units;
    return *this;
  }
  friend Spent operator*(const Spent& spent, double share) {
    return {spent.requests * share, spent.read_units * share, spent.write_units * share};
  }
};

/// The same with the messages that were claimed for it, and their size in begun KiB. A value.
struct Usage {
  Spent spent;
  double messages = 0;
  double kib = 0;
  double indexed_kib = 0;  ///< begun KiB of their records in DynamoMQ's table, which take more beside the body
  // How long they had lain there, due, when they were handed out for the first time: what storage is paid for.
  double message_seconds = 0;
  double kib_seconds = 0;  ///< the same, times the size of each to the byte

  bool none() const { return spent.none() && messages == 0; }
  Usage& operator+=(const Usage& other) {
    spent += other.spent;
    messages += other.messages;
    kib += other.kib;
    indexed_kib += other.indexed_kib;
    message_seconds += other.message_seconds;
    kib_seconds += other.kib_seconds;
    return *this;
  }
};

}  // namespace sluice::cost
