// Node's http as an origin: writes down each request, and answers with digests.
const http = require("http"), https = require("https"), crypto = require("crypto"), fs = require("fs");
const digest = bytes => crypto.createHash("md5").update(bytes).digest("hex").slice(0, 8);
const [chain, key] = process.argv.slice(2).map(file => fs.readFileSync(file));
const create = chain ? handler => https.createServer({cert: chain, key}, handler) : http.createServer;
const server = create((request, response) => {
  const pieces = [];
  request.on("data", piece => pieces.push(piece));
  request.on("end", () => {
    const body = Buffer.concat(pieces), method = Buffer.from(request.method, "latin1"), target = Buffer.from(request.url, "latin1");
    fs.writeSync(1, `${method.toString("hex")} ${target.toString("hex")} ${body.length} ${digest(body)}\n`);
    response.setHeader("X-Id", digest(Buffer.concat([method, Buffer.from(" "), target])));
    response.end(digest(body));
  });
});
server.keepAliveTimeout = server.headersTimeout = server.requestTimeout = 0;
server.listen(0, "127.0.0.1", () => fs.writeSync(1, `ready ${server.address().port}\n`));
