#pragma once

#include <string>
#include <string_view>
#include <variant>

/// Why a text can be no subject, for people.
struct BadSubject {
  std::string reason;
};

/// The subject "topic.id", or "topic" alone where the id is empty. Spaces, wildcards, control characters and empty
/// tokens are what makes it bad; with `encode` they are written as %XX instead, and so is '%'. What begins with '$' or
/// "_INBOX." belongs to the server, where a message would be a command, and is always bad. Pure.
std::variant<std::string, BadSubject> subject_of(std::string_view topic, std::string_view id, bool encode);
