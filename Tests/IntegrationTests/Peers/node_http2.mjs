// Fetches over HTTP/2 with nothing but Node's own modules: node_http2.mjs PROXY_PORT AUTHORITY.pem URL [front]
// By CONNECT to the proxy; `front`: by a CONNECT that is a stream of an HTTP/2 connection to the proxy's own port with TLS.
// Then a POST of what it got to /echo. Prints a line of JSON.
import crypto from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import http2 from 'node:http2';
import tls from 'node:tls';

const [port, authority, address, front] = process.argv.slice(2);
const url = new URL(address);
const target = `${url.hostname}:${url.port || 443}`;
const ca = fs.readFileSync(authority);

function failed(why) {
  console.log(JSON.stringify({ failed: String(why) }));
  process.exit(1);
}

function inside(socket) {
  const secure = tls.connect({ socket, servername: url.hostname, ca, ALPNProtocols: ['h2'] });
  secure.on('error', failed);
  const session = http2.connect(url.origin, { createConnection: () => secure });
  session.on('error', failed);
  const ask = (fields, body) => new Promise((resolve, reject) => {
    const stream = session.request(fields);
    const pieces = [];
    let status;
    stream.on('response', (answer) => { status = answer[':status']; });
    stream.on('data', (piece) => pieces.push(piece));
    stream.on('end', () => resolve({ status, body: Buffer.concat(pieces) }));
    stream.on('error', reject);
    stream.end(body);
  });
  (async () => {
    const many = await Promise.all(Array.from({ length: 20 }, () => ask({ ':path': url.pathname })));
    const digests = new Set(many.map((answer) => crypto.createHash('sha256').update(answer.body).digest('hex')));
    const echo = await ask({ ':path': '/echo', ':method': 'POST' }, many[0].body);
    const received = JSON.parse(echo.body);
    console.log(JSON.stringify({
      protocol: secure.alpnProtocol, statuses: [...new Set(many.map((answer) => answer.status))], length: many[0].body.length,
      isSame: digests.size === 1 && digests.has(received.sha256), echo: received.length,
    }));
    session.close();
    process.exit(0);
  })().catch(failed);
}

if (front) {
  const session = http2.connect(`https://127.0.0.1:${port}`, { ca: fs.readFileSync(front), checkServerIdentity: () => undefined });
  session.on('error', failed);
  const tunnel = session.request({ ':method': 'CONNECT', ':authority': target }, { endStream: false });
  tunnel.on('response', (answer) => (answer[':status'] === 200 ? inside(tunnel) : failed(answer[':status'])));
  tunnel.on('error', failed);
} else {
  http.request({ host: '127.0.0.1', port, method: 'CONNECT', path: target, headers: { Host: target } })
    .on('connect', (response, socket) => (response.statusCode === 200 ? inside(socket) : failed(response.statusCode)))
    .on('error', failed)
    .end();
}
