#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"

namespace sluice::cli::convert {

/// What a template does with its variable. `empty` forms take a variable that is set and empty for one that is unset.
enum class Form {
  plain,                  ///< $V and ${V}
  fallback_when_empty,    ///< ${V:-word}
  fallback_when_unset,    ///< ${V-word}
  replacement_when_full,  ///< ${V:+word}
  replacement_when_set,   ///< ${V+word}
  required_when_empty,    ///< ${V:?word}
  required_when_unset,    ///< ${V?word}
};

/// A compose-style template. A value.
struct Template {
  std::string name;
  Form form = Form::plain;
  std::string word;  ///< what stands behind the form, which may hold templates again
};

/// A text in which each template is a mark, so that a parser of YAML sees one plain word where it stands. A value.
struct MarkedText {
  std::string text;
  std::vector<Template> templates;  ///< the n-th is marked by `mark(n)`
  std::string error;                ///< empty when all went well; says the line and never what stands there
};

/// Finds the templates of a text as compose-go v2 does: `$$` is a `$`, a `$` before anything else is itself.
MarkedText mark_templates(std::string_view text);

/// What became of templates once they were expanded. A value.
struct Expanded {
  std::string text;
  std::vector<std::string> missing;  ///< variables that must be set and are not
};

/// Expands what is marked, as outbox-worker does when it starts.
Expanded expand_marks(std::string_view marked, const std::vector<Template>& templates,
                      const config::Environment& environment);

/// A marked text in the syntax of our own files.
struct Translated {
  std::string text;
  bool has_variables = false;
  std::vector<std::string> differences;  ///< where ours behaves otherwise, each a clause about one variable
  std::vector<std::string> unsayable;    ///< variables of forms that ours does not have
};

/// `needed`: an unset variable is an error, as for fields that must not be blank.
Translated translate_marks(std::string_view marked, const std::vector<Template>& templates, bool needed);

/// True when the text holds a mark.
bool has_marks(std::string_view text);
/// The number of the template that the text is a mark of, and nothing else.
std::optional<std::size_t> only_mark(std::string_view text);

}  // namespace sluice::cli::convert
