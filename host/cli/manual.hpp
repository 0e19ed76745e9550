#pragma once

#include <string>
#include <vector>

namespace sluice::cli {

/// A page for man(1), in troff. A value.
struct ManualPage {
  std::string file;  ///< such as "sluice-send.1"
  std::string text;
};

/// sluice(1), dynamomq(1), and a page for each command. They are made from what help is made from, so that neither
/// knows a command or an option that the other does not.
std::vector<ManualPage> manual();

}  // namespace sluice::cli
