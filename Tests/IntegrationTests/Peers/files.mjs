// A server of files that reads paths as Node programs do: files.mjs DIRECTORY
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';

const root = process.argv[2];
const server = http.createServer((request, response) => {
  try {
    const name = path.normalize(decodeURIComponent(request.url.split('?')[0]));
    const body = fs.readFileSync(path.join(root, name));
    response.writeHead(200, { 'Content-Type': 'text/plain', 'Content-Length': body.length });
    response.end(body);
  } catch {
    response.writeHead(404, { 'Content-Length': 0 });
    response.end();
  }
});
server.listen(0, '127.0.0.1', () => console.log(JSON.stringify({ event: 'ready', port: server.address().port })));
