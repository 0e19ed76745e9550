#pragma once

#include <cstdlib>
#include <optional>
#include <sluice/client/export.hpp>
#include <sluice/client/message.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace sluice::client {

/// DynamoMQ's errors by its names, two of the producer's own, and two of SQS.
enum class ErrorKind {
  id_not_provided,           ///< IDNotProvidedError
  id_not_found,              ///< IDNotFoundError
  id_duplicated,             ///< IDDuplicatedError
  conditional_check_failed,  ///< ConditionalCheckFailedError: somebody else has changed the message since
  empty_queue,               ///< EmptyQueueError: no message is due
  building_expression,       ///< BuildingExpressionError: a request that cannot be asked
  dynamodb_api,              ///< DynamoDBAPIError: the store refused, or cannot be reached
  unmarshaling_attribute,    ///< UnmarshalingAttributeError: an answer or record that nobody can read
  marshaling_attribute,      ///< MarshalingAttributeError: content that the store cannot hold
  invalid_state_transition,  ///< InvalidStateTransitionError: the message's state forbids it
  queue_full,                ///< QueueFullError: the producer holds as much as it may
  producer_closed,           ///< ProducerClosedError: closed before this message was sent
  over_limit,                ///< OverLimitError: as many messages are in flight as may be
  invalid_parameter_value,   ///< InvalidParameterValueError: a time beyond what a call takes
};

/// A failure as a value. Errors are compared and branched on by kind; the rest is for people.
class [[nodiscard]] SLUICE_CLIENT_API Error {
 public:
  explicit Error(ErrorKind kind, std::string cause = {}) : kind_(kind), cause_(std::move(cause)) {}
  /// InvalidStateTransitionError.
  Error(std::string cause, std::string operation, Status current)
      : kind_(ErrorKind::invalid_state_transition),
        cause_(std::move(cause)),
        operation_(std::move(operation)),
        current_(current) {}
  /// The same failure, marked as one that may pass by itself, and with the store's name in place of "DynamoDB API".
  Error with(bool transient, std::string_view store) && {
    transient_ = transient;
    store_ = store;
    return std::move(*this);
  }

  ErrorKind kind() const { return kind_; }
  /// DynamoMQ's name of the kind, such as "IDNotFoundError".
  std::string_view name() const;
  /// One line, in DynamoMQ's words.
  std::string message() const;
  /// What lies beneath, without DynamoMQ's words around it; may be empty.
  const std::string& cause() const { return cause_; }
  /// The same call may succeed later. After a transient failure of a send with an id of one's own, sending again is
  /// safe: a message that did arrive makes it IDDuplicatedError.
  bool transient() const { return transient_; }
  /// The message's status when its state forbade the operation.
  std::optional<Status> current() const { return current_; }

 private:
  ErrorKind kind_;
  bool transient_ = false;
  std::string cause_;
  std::string operation_;
  std::string store_;
  std::optional<Status> current_;
};

/// A value or an Error. Asking for the one that is not there ends the process. A value itself; as thread-safe as T.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  T& value() & { return *held(std::get_if<0>(&state_)); }
  const T& value() const& { return *held(std::get_if<0>(&state_)); }
  T&& value() && { return std::move(*held(std::get_if<0>(&state_))); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const { return *held(std::get_if<1>(&state_)); }

  /// The value, or this one in place of an error.
  template <typename U>
  T value_or(U&& other) const& {
    return has_value() ? value() : static_cast<T>(std::forward<U>(other));
  }
  template <typename U>
  T value_or(U&& other) && {
    return has_value() ? std::move(*this).value() : static_cast<T>(std::forward<U>(other));
  }

 private:
  template <typename U>
  static U* held(U* place) {
    return place != nullptr ? place : (std::abort(), nullptr);
  }
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool has_value() const { return !error_; }
  explicit operator bool() const { return has_value(); }
  const Error& error() const { return error_ ? *error_ : (std::abort(), *error_); }

 private:
  std::optional<Error> error_;
};

}  // namespace sluice::client
