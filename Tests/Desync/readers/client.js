// Node as a client: asks the proxy for the URLs on its input, over connections that stay, and says what came.
const http = require("http"), crypto = require("crypto"), fs = require("fs");
const agent = new http.Agent({ keepAlive: true, maxSockets: 4 });
const [, , host, port] = process.argv;
const get = url => new Promise(done => {
  const fail = () => done(`${url} error`);
  const request = http.request({ host, port, path: url, headers: { Host: "a.test" }, agent, timeout: 10000 }, response => {
    const pieces = [];
    response.on("data", piece => pieces.push(piece));
    response.on("aborted", fail);
    response.on("error", fail);
    response.on("end", () => {
      const body = Buffer.concat(pieces);
      done(response.complete
        ? `${url} ${response.statusCode} ${body.length} ${crypto.createHash("md5").update(body).digest("hex").slice(0, 8)}` : `${url} error`);
    });
  });
  request.on("timeout", () => request.destroy(new Error("timeout")));
  request.on("error", fail);
  request.end();
});
(async () => {
  for (const url of fs.readFileSync(0, "latin1").trim().split("\n")) console.log(await get(url));
  agent.destroy();
})();
