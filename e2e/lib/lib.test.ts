import { expect, test } from "vitest";
import { Model } from "./model";
import { Server } from "./server";

test("a turn with the demo model, and with a scripted one after a kill", async () => {
  const demo = await Server.start();
  try {
    const session = await demo.session();
    await demo.json("POST", `/v1/sessions/${session}/turns`, { input: "hello" });
    expect((await demo.settled(session)).map((turn) => turn.state)).toEqual(["completed"]);
    const { url } = demo;
    await demo.kill();
    await demo.boot();
    expect(demo.url).toBe(url);
    expect((await demo.items(session))[0].user_message.text).toBe("hello");
  } finally {
    await demo.close();
  }
});

test("a scripted model answers, and refuses what is more than its script", async () => {
  const model = await Model.start({ text: ["one ", "two"] });
  const server = await Server.start({ model: model.url });
  try {
    const session = await server.session();
    for (const input of ["a", "b"]) await server.json("POST", `/v1/sessions/${session}/turns`, { input });
    expect((await server.settled(session)).map((turn) => turn.state)).toEqual(["completed", "failed"]);
    expect((await server.items(session))[1].assistant_message.text).toBe("one two");
    expect(model.problems).toHaveLength(1);
  } finally {
    await server.close();
    await model.close();
  }
});
