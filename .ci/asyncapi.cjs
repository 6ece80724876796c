// Ends with 1 if a document has errors; prints them, and warnings.
const { Parser, fromFile } = require("@asyncapi/parser");

const ERROR = 0;
const WARNING = 1;

async function main(file) {
  const { document, diagnostics } = await fromFile(new Parser(), file).parse();
  const told = diagnostics.filter((found) => found.severity <= WARNING);
  for (const found of told) {
    console.error(`${file}: ${found.path.join(".")}: ${found.message} (${found.code})`);
  }
  if (document === undefined || told.some((found) => found.severity === ERROR)) {
    return 1;
  }
  console.log(`${file}: AsyncAPI ${document.version()}, ${document.channels().length} channels, no errors`);
  return 0;
}

main(process.argv[2]).then((code) => process.exit(code));
