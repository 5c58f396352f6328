// An HTTP server that reads each request's form with Node's own formData() and tells what it is.
import crypto from 'node:crypto';
import http from 'node:http';

const server = http.createServer(async (request, response) => {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  const form = await new Response(Buffer.concat(pieces), { headers: { 'content-type': request.headers['content-type'] } })
    .formData();
  const parts = [];
  for (const [name, value] of form) {
    const bytes = Buffer.from(typeof value === 'string' ? value : await value.arrayBuffer());
    parts.push({
      name, file: typeof value === 'string' ? null : value.name, type: typeof value === 'string' ? null : value.type,
      length: bytes.length, sha256: crypto.createHash('sha256').update(bytes).digest('hex'), text: bytes.toString('latin1', 0, 200),
    });
  }
  response.end(JSON.stringify({ parts }));
});
server.listen(0, '127.0.0.1', () => console.log(JSON.stringify({ event: 'ready', port: server.address().port })));
