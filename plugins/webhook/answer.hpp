#pragma once

#include <chrono>
#include <optional>
#include <sluice/handler.hpp>
#include <string>

/// What came of a request. A value.
struct Answer {
  enum class End {
    answered,  ///< `status` is the server's last word
    failed,    ///< no answer; `error` says why
    stopped,   ///< the handler was asked to finish first
  };
  End end = End::failed;
  long status = 0;
  std::string body;                                 ///< at most the response limit of it
  std::optional<std::chrono::seconds> retry_after;  ///< as the server asks, from now on
  std::string error;
  std::string stray_redirect;  ///< the other origin that a redirect leads to, which is not followed; empty: none
};

/// Turns an answer into an outcome: 2xx done; 408, 425, 429, 5xx and no answer retry, after what the server asks up to
/// `retry_after_max`; everything else reject.
sluice::Outcome judge(const Answer& answer, std::chrono::nanoseconds retry_after_max);
