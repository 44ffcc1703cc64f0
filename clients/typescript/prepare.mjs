// Builds dist/, which is not in the repository, when the package is installed from a clone.
import { execSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const cwd = fileURLToPath(new URL(".", import.meta.url));
const run = (command) => execSync(command, { cwd, stdio: ["ignore", 2, 2] });
if (!existsSync(new URL("node_modules/typescript", import.meta.url))) {
  run("npm ci --ignore-scripts --no-audit --no-fund --loglevel=error");
}
run("npm run --silent build");
