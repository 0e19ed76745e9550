#!/usr/bin/env python3
"""Each shipped plugin's README names the options that the plugin declares, with their defaults, and no other."""

import os
import re

from support import SHIPPED_PLUGINS, SOURCE, Case, main


class PluginDocs(Case):
    def declared(self, plugin):
        """{option: its default, or None}, as the binary says."""
        self.write("host.toml", f'[host]\nplugin_dirs = ["{SHIPPED_PLUGINS}"]\n')
        text = self.sluice("plugins", "--output", "text", check=True).stdout
        section = re.search(rf"^{re.escape(plugin)} .*?(?=^\S|\Z)", text, re.M | re.S).group(0)
        found = {}
        for name, traits in re.findall(r"^    ([a-z_]+) \((.*?)\): ", section, re.M):
            default = re.search(r"default (.*?)(?:, secret)?$", traits)
            found[name] = default.group(1) if default else None
        return found

    def test_readmes_and_plugins_agree(self):
        for plugin in ("log", "verify-file", "exec", "webhook", "nats", "sns", "queue"):
            with self.subTest(plugin):
                with open(os.path.join(SOURCE, "plugins", plugin, "README.md"), encoding="utf-8") as file:
                    readme = file.read()
                options = self.declared(plugin)
                self.assertTrue(options)
                rows = re.findall(r"^\| `.*$", readme.partition("## Options")[2], re.M)
                for name, default in options.items():
                    row = "".join(row for row in rows if f"`{name}`" in row.split("|")[1])
                    self.assertTrue(row, f"{plugin}: {name} is not documented")
                    self.assertIn((default or "").strip('"[]'), row, f"{plugin}: default of {name}")
                named = {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}
                self.assertEqual(set(options), named, plugin)


if __name__ == "__main__":
    main()
