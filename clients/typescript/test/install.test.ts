import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL("../..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "lot-client-"));
after(() => rmSync(folder, { recursive: true }));

const PROGRAM = `
import { createLotClient, Outcome, type LotClient } from "lot-client";
import { type Pattern, PatternSchema } from "lot-client/gen/lot/v1/pattern_pb";

const client: LotClient = createLotClient({ address: "127.0.0.1:1" });
const name: Pattern["$typeName"] = PatternSchema.typeName;
console.log(typeof client.patterns.savePattern, name, Outcome.SUCCESS);
client.close();
`;

test("a fresh project installs it from the clone, with its types", () => {
  const [clone, project] = [join(folder, "clone"), join(folder, "project")];
  for (const name of ["package.json", "package-lock.json", "prepare.mjs", "src", "tsconfig.json"]) {
    cpSync(join(here, name), join(clone, name), { recursive: true });
  }
  symlinkSync(join(here, "node_modules"), join(clone, "node_modules")); // what `npm ci` puts there
  mkdirSync(project);
  writeFileSync(join(project, "package.json"), '{"type": "module", "private": true}');
  writeFileSync(join(project, "program.ts"), PROGRAM);
  const run = (command: string, ...given: string[]) =>
    execFileSync(command, given, { cwd: project, encoding: "utf8", stdio: "pipe" });

  run("npm", "install", "--offline", "--no-audit", "--no-fund", clone);
  const tsc = join(here, "node_modules", ".bin", "tsc");
  run(tsc, "--strict", "--skipLibCheck", "--target", "es2022", "--module", "nodenext", "program.ts");

  assert.equal(run("node", "program.js").trim(), "function lot.v1.Pattern 1");
});
