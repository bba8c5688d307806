export function Limits({ project }: { project: string }) {
  return <section class="page"><h2>Limits of {project}</h2></section>
}
