import { useLoad } from '../app/load'
import { Failure, PageHead } from '../app/PageHead'
import { projects, server } from '../app/server'
import { grouped } from '../app/words'
import { countsOf } from './metrics'
import { Manifest } from './Manifest'

// Limits shows what each tool may put into the history, and how often that was too little.
export function Limits({ project: named }: { project: string }) {
  const project = named || (projects.value.find((one) => one.default) ?? projects.value[0])?.name
  if (!project) return null
  return (
    <section class="page" aria-label="Limits">
      <PageHead title="Limits" page="limits" project={project} />
      <p class="lead">Each result of a tool is cut to a number of bytes before it enters the history, so that no output can make a session too large to go on.</p>
      <Tools project={project} />
      <Manifest project={project} />
    </section>
  )
}

function Tools({ project }: { project: string }) {
  const tools = useLoad(async (signal) => (await server.get('/v1/tools', { query: { project }, signal })).data, [project])
  const metrics = useLoad(async (signal) => countsOf(await (await server.fetch('/metrics', { signal })).text()), [project])
  return (
    <section class="block" aria-labelledby="tools">
      <h2 id="tools">Tools</h2>
      <Failure text={tools.failure || metrics.failure} />
      <div class="table-box" tabIndex={0} role="region" aria-label="Limits of tools">
        <table class="figures">
          <thead><tr><th>Tool</th><th>Limit, bytes</th><th>Calls</th><th>Cut</th><th>Bytes dropped</th></tr></thead>
          <tbody>
            {tools.value?.map((tool) => {
              const of = metrics.value?.get(tool.name)
              return (
                <tr key={tool.name}>
                  <td><strong>{tool.name}</strong>{tool.effect === 'effect' && <span class="tag">changes things</span>}</td>
                  <td>{grouped(tool.limit_bytes)}</td>
                  <td>{of ? grouped(of.calls) : ''}</td>
                  <td>{of ? share(of.cuts, of.calls) : ''}</td>
                  <td>{of ? share(of.droppedBytes, of.originalBytes) : ''}</td>
                </tr>
              )
            })}
          </tbody>
        </table>
      </div>
      <p class="hint">Counted since the server was started, over all projects.</p>
    </section>
  )
}

function share(part: number, whole: number): string {
  return part === 0 ? '0' : `${grouped(part)} (${Math.max(1, Math.round((100 * part) / whole))} %)`
}
